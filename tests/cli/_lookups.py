"""`memstow push` looks names up with getaddrinfo_a. glibc starts a thread for it that ThreadSanitizer does not know, so
the first malloc there crashes."""
from support import features, skip

if features()["sanitize"] == "thread":
    skip("ThreadSanitizer does not know the thread of getaddrinfo_a")
