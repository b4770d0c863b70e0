"""The formats of ComfyUI's figures for Prometheus. In: the Accept header of a scraper. Out: options of `memstow
metrics`, and the content type of its answer."""
OPEN, MODELS = "application/openmetrics-text", 20
FORMS = {"openmetrics": f"{OPEN}; version=1.0.0; charset=utf-8",
         "prometheus": "text/plain; version=0.0.4; charset=utf-8"}


def form_of(accept: str) -> tuple[tuple[str, ...], str]:
    """The options and the content type for a scraper with this Accept header. A scraper that can read OpenMetrics names
    this format in the header."""
    form = "openmetrics" if OPEN in accept.lower() else "prometheus"
    return ("--leaks", f"--models={MODELS}", f"--format={form}"), FORMS[form]
