#!/usr/bin/env python3
# needs: torch
# timeout: 200
"""Values come back unchanged: tensors of each type, shape and stride, arrays, nested values, texts, numbers, pickles.
Values that must pass by reference do so, and the reason is given. A value that comes back as another type gives a
warning. Foreign bytes are refused. Untrusted bytes are refused if they describe a value that is larger than the bytes
themselves."""
import os

import support

CODE = r"""if True:
    import collections, ctypes, dataclasses, io, logging, math, sys, threading
    import numpy, torch
    import memstow_serialize, memstow_state
    from memstow_serialize import Serialized, SerializeError, deserialize, is_reference, serialize

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("memstow").addHandler(handler)
    sys.modules["__main__"].__file__ = "x"

    class Tagged(torch.Tensor):
        pass

    @dataclasses.dataclass
    class Point:
        x: int
        weights: object

    class Odd:
        def __reduce__(self):
            return int, (7,)

    Pair = collections.namedtuple("Pair", "a b")

    class ModelPatcher:
        pass

    class Derived(ModelPatcher):
        pass

    class Holder:
        def __init__(self, inner):
            self.inner = inner

    def same(a, b):
        if isinstance(a, torch.Tensor):
            bits = [t.view(torch.uint8) if a.dtype == torch.bfloat16 else t for t in (a, b)]
            return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)
        if isinstance(a, numpy.ndarray):
            return a.dtype == b.dtype and a.shape == b.shape and numpy.array_equal(a, b)
        if isinstance(a, dict):
            return list(map(repr, a)) == list(map(repr, b)) and all(same(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
        return type(a) is type(b) and (a == b or a != a and b != b)

    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    tensors = [torch.randn(3, 4).to(kind) for kind in (torch.float16, torch.bfloat16, torch.float64, torch.complex64)]
    tensors += [torch.randint(0, 2, (5,)).to(kind) for kind in (torch.bool, torch.uint8, torch.int64)]
    tensors += [base.permute(2, 0, 1), base[:, 1], base[:, :, ::2], torch.ones(1, 3).expand(4, 3), torch.tensor(7),
                torch.empty(0, 3), base.to(torch.complex64).conj(), torch.nn.Parameter(base).detach()]
    arrays = [numpy.arange(6).reshape(2, 3), numpy.arange(6).reshape(2, 3).T, numpy.float32(base.numpy())[::2],
              numpy.zeros((0, 2)), numpy.frombuffer(b"readonly", dtype="u1"), numpy.array(["a", "bc"])]
    plain = [None, True, 0, -2**70, 1.5, math.inf, math.nan, "", "ä\udc80\0x", b"", b"\0\1", bytearray(b"xy"), [], {},
             (), [1, (2, "x")], {"a": {1: None, (1, "b"): [b"x"]}}, {3, 4}, 2 + 1j, frozenset("a"), range(4),
             {"samples": base, "again": [base, base]},
             {"image": tensors[0], "list": [arrays[0], {"deep": tensors[1]}]}, [[base, {"pooled_output": base[0]}]]]
    store = memstow_state.open("values")
    store.begin()
    for number, value in enumerate(tensors + arrays + plain):
        assert is_reference(value) is None, value
        assert same(value, deserialize(serialize(value))), value
        store.put(f"v{number}", value)
    store.commit()
    for number, value in enumerate(tensors + arrays + plain):
        assert same(value, store.get(f"v{number}")), (number, value)
    strided = store.get(f"v{len(tensors) - 8}")
    assert strided.stride() == base.permute(2, 0, 1).stride(), strided.stride()
    twice = deserialize(serialize({"a": base, "b": base}))
    assert len(serialize({"a": base, "b": base}).segments) == 2 and same(twice["a"], base)
    gaps = base[:, 1].clone().repeat(64, 1)[:, ::2]  # copied on the way: the copy must live as long as its bytes
    back = [deserialize(serialize(gaps)) for _ in range(50)]
    others = [torch.full(gaps.shape, float(number)) for number in range(500)]
    assert all(same(gaps, one) for one in back) and others
    assert not said, said
    kinds = {"TORCH_TENSOR": base, "NUMPY_ARRAY": arrays[0], "STRING": "x", "JSON": [1], "BYTES": b"x",
             "NESTED": [base], "CUSTOM": {1}}
    for kind, value in kinds.items():
        assert serialize(value).type == kind, (kind, serialize(value).type)
    assert not any(b"base64" in bytes(segment) for segment in serialize([base]).segments)
    assert sum(len(segment) for segment in serialize([base]).segments) < base.nbytes + 200

    # in place: a value that was got is its reader's
    got = store.get("v7")
    got.zero_()
    assert same(store.get("v7"), tensors[7])

    # another type than it was
    assert type(deserialize(serialize(torch.ones(2).as_subclass(Tagged)))) is torch.Tensor
    assert len(said) == 1 and "__main__.Tagged" in said[0] and "torch.Tensor" in said[0], said

    said.clear()
    again = deserialize(serialize([{"deep": (torch.ones(2).as_subclass(Tagged),)}, Odd(), base]))
    assert same(again[2], base) and len(said) == 2, said
    assert any("__main__.Tagged" in text and "torch.Tensor" in text for text in said), said
    assert type(again[1]) is int, again
    assert any("__main__.Odd" in text and "builtins.int" in text for text in said), said

    # tensors in containers that only pickle knows are beside the pickle, and are not copied
    large = torch.arange(1 << 18, dtype=torch.float32)
    holders = [Point(1, large), Pair(large, [large]), collections.OrderedDict(x=large), {large},
               collections.deque([large, 1])]
    for holder in holders:
        serialized = serialize(holder)
        assert serialized.type == "CUSTOM" and large.nbytes in map(len, serialized.segments), serialized.segments
        assert sum(map(len, serialized.segments)) < large.nbytes + 1000, list(map(len, serialized.segments))
        inner = next(segment for segment in serialized.segments if len(segment) == large.nbytes)
        assert ctypes.addressof(inner) == large.data_ptr(), "it was copied"
        assert type(deserialize(serialized)) is type(holder)
    back = deserialize(serialize(Point([base[:, 1], large], torch.nn.Parameter(base))))
    assert same(back.x, [base[:, 1], large]) and type(back.weights) is torch.nn.Parameter
    assert torch.equal(back.weights, base) and len(serialize([large, Point(2, large)]).segments) == 3
    assert "cannot be pickled" in is_reference([large, Point(3, [large, (n for n in ())])])

    tied = deserialize(serialize(Point(large, [large, large])))
    assert tied.x is tied.weights[0] is tied.weights[1], "one tensor came back as several"
    marked = torch.ones(3)
    marked.mark = "kept"
    assert deserialize(serialize(Point(marked, 1))).x.mark == "kept"

    # by reference
    models = [ModelPatcher(), Derived(), [[base, {"control": Derived()}]], torch.nn.Linear(2, 2),
              Holder(ModelPatcher()), threading.Lock(), {"x": (1, [torch.nn.Linear(1, 1)])}, (n for n in ())]
    for value in models:
        assert is_reference(value), value
    store.begin()
    store.put("model", models[0]); store.put("v0", models[3])
    assert store.get("model") is models[0]
    assert store.get_committed("model", None) is None and same(store.get_committed("v0"), tensors[0])
    store.abandon()
    assert store.get("model", None) is None and same(store.get("v0"), tensors[0])
    store.begin(); store.put("model", models[0]); store.put("v0", models[3]); store.commit()
    rows = {row["id"]: row for row in store.info()}
    assert rows["model"]["where"] == rows["v0"]["where"] == "reference" and rows["v1"]["where"] == "ram"
    assert "weights" in rows["model"]["why"]
    assert len(store.ids()) == len(set(store.ids())) == len(tensors + arrays + plain) + 1
    store.begin(); store.put("v0", b"for a moment"); store.put("v0", models[0]); store.commit()
    assert store.get("v0") is models[0] and store.ids().count("v0") == 1
    assert not any(row.id == b"v0" for row in store._values())
    store.begin(); store.put("v0", "text again")
    assert store.get_committed("v0") is models[0] and store.get("v0") == "text again"
    store.commit()
    assert store.get_committed("v0") == "text again"
    assert store.get("v0") == "text again" and store.get("model") is models[0]
    store.release("model"); store.release("v1")
    for gone in ("model", "v1"):
        try:
            store.get(gone)
            raise AssertionError(gone)
        except KeyError:
            pass
    for turn in range(2):
        try:
            store.put("later", models[0])
            raise AssertionError("a model was put, and no iteration has begun")
        except memstow_state.StateError as error:
            assert "no iteration has begun" in str(error) and "later" in str(error), error
        store.begin(); store.abandon()
    assert "later" not in store.ids()
    limited = memstow_state.open("limited", ram_limit=2**64 + 1)
    limited.begin(); limited.put("x", bytes(1_000_000)); limited.commit()
    assert limited.info()[0]["where"] == "ram", "a limit of more than 64 bits is no small one"
    files = memstow_state.open("files", use_ram=False)
    files.begin()
    try:
        files.put("unet", models[2])
        raise AssertionError("a model in a file")
    except memstow_state.StateError as error:
        assert "'unet' cannot be kept in files" in str(error) and "Derived" in str(error), error

    # what holds itself, or the same list again and again, is as large as it is
    holding, shared, deep = [base], [base], []
    holding.append(holding)
    for _ in range(40):
        shared = [shared, shared]
    for _ in range(5000):
        deep = [deep]
    again = deserialize(serialize({"x": holding}))["x"]
    assert again[1] is again and same(again[0], base)
    written = serialize(shared)
    assert sum(map(len, written.segments)) < 20_000, list(map(len, written.segments))
    again = deserialize(written)
    assert again[0] is again[1] and len(serialize([base, [base]] * 5000).segments) == 2
    assert "cannot be pickled" in is_reference(deep)
    store.begin()
    for number, value in enumerate((holding, shared, deep)):
        store.put(f"odd{number}", value)
    assert store.get("odd2") is deep and store.get("odd0")[1][1][0].shape == base.shape
    store.commit()

    # what is written but could not be read back is held: the store loses nothing
    class Refused(Exception):
        def __init__(self, one, two):
            super().__init__("only one")
    sys.modules["__main__"].Refused = Refused
    assert "cannot be read from its pickle: TypeError" in is_reference([1, Refused(1, 2)])

    # tensors and arrays of every kind come back, or are held
    kinds = [getattr(torch, name) for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
    odd = [torch.zeros(4, 0), torch.full((2,), math.nan), base.clone().requires_grad_(), base.to_sparse(),
           base[0].to_sparse_csr(),
           torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), torch.empty(3, device="meta"),
           torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.zeros(3, dtype=torch.complex64).imag,
           numpy.zeros(3, []), numpy.zeros((), "M8[ns]"), numpy.array([base, None], dtype=object),
           numpy.zeros(2, [("a", "i4"), ("b", "f8")]), numpy.ma.masked_array([1, 2], [0, 1]), numpy.float32(2)]
    for kind in kinds:
        try:
            value = torch.zeros(16, dtype=torch.uint8).view(kind)
        except (RuntimeError, TypeError):
            continue
        if "qint" in str(kind) or "quint" in str(kind):
            assert "without a scale" in is_reference(value) and "without a scale" in is_reference({1: {value}}), kind
        else:
            odd.append(value)
    for number, value in enumerate(odd):
        store.begin()
        store.put("odd", value)
        store.commit()
        back = store.get("odd")
        assert type(back) is type(value) and getattr(back, "dtype", 0) == getattr(value, "dtype", 0), (number, value)

    for segments in ([b""], [b"{}"], [b'{"type": "x", "value": {"T": [9, "float32", [1], [1]]}}'],
                     [b'{"type": "x", "value": {"q": 1}}'],
                     [b'{"type": "x", "value": {"T": [1, "quint8", [8], [1]]}}', bytearray(8)], # PyTorch would crash
                     [b'{"type": "x", "value": {"T": [1, "qint32", [0], [1]]}}', b""]):
        try:
            deserialize(Serialized("JSON", segments))
            raise AssertionError(segments)
        except SerializeError:
            pass

    # bytes that are not trusted cannot make a value that is larger than they are
    for value in tensors + arrays + plain:
        bytes_of = serialize(value)
        if not bytes_of.type.startswith("CUSTOM"):
            assert same(value, deserialize(bytes_of, pickles=False)), value
    for table, words in (('{"T": [1, "uint8", [300000000], [0]]}', "number of elements"),
                         ('{"T": [1, "float32", [2, 2], [1, 1]]}', "number of elements"),
                         ('{"T": [1, "bits8", [12], [1]]}', "not implemented"),
                         ('[{"b": 1}, {"b": 1}]', "twice"), ('[{"B": 1}, {"N": [1, "|u1", [12]]}]', "twice")):
        try:
            bytes_of = Serialized("NESTED", [f'{{"type": "x", "value": {table}}}'.encode(), bytearray(12)])
            raise AssertionError(deserialize(bytes_of, pickles=False))
        except SerializeError as error:
            assert words in str(error), (table, error)
    print("done")
    """
done = support.memstow("run", "--quiet", "-o", "out.mst", "--", support.PYTHON, "-c", CODE, timeout=190,
                       env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
assert done.stdout == "done\n", done.stdout + done.stderr
without = support.run(support.PYTHON, "-c", "import memstow_state\nassert not memstow_state.available()\n"
                      "try:\n    memstow_state.open('x')\nexcept memstow_state.StateError as error:\n    print(error)",
                      env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")}).stdout
assert "memstow run -- python" in without, without
