/* url.c — see url.h. */
#include "tools/net/url.h"

#include <stdlib.h>
#include <string.h>

enum { HTTP = 80, HTTPS = 443, PORT_MOST = 65535 };

static bool url_has_only_letters(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text > '~') return false;
    return true;
}

static bool url_copy(char *to, size_t size, const char *from, size_t length) {
    if (length >= size) return false;
    memcpy(to, from, length);
    to[length] = 0;
    return true;
}

/* Takes the port out of ":PORT". An empty text means the usual port. Returns false if the text has another form. */
static bool url_take_port(struct url *url, const char *text, size_t length) {
    url->port = url->secure ? HTTPS : HTTP;
    if (!length) return true;
    char digits[8], *end;
    if (*text != ':' || !url_copy(digits, sizeof digits, text + 1, length - 1)) return false;
    unsigned long port = strtoul(digits, &end, 10);
    url->port = (uint16_t)port;
    return digits[0] >= '0' && digits[0] <= '9' && !*end && port > 0 && port <= PORT_MOST;
}

/* Takes the host and the port out of HOST[:PORT] or [ADDRESS][:PORT]. Returns false if the text has another form. */
static bool url_take_host(struct url *url, const char *text, size_t length) {
    bool bracket = *text == '[';
    const char *end = memchr(text, bracket ? ']' : ':', length);
    if (bracket && !end) return false;
    if (!end) end = text + length;
    size_t name = (size_t)(end - text) - bracket;
    const char *rest = end + bracket;
    return name && url_copy(url->host, sizeof url->host, text + bracket, name) &&
           url_take_port(url, rest, length - (size_t)(rest - text));
}

bool url_parse(struct url *url, const char *text) {
    *url = (struct url){.secure = strncmp(text, "https://", 8) == 0};
    if (!url->secure && strncmp(text, "http://", 7) != 0) return false;
    text += url->secure ? 8 : 7;
    size_t host = strcspn(text, "/"), path = strlen(text + host);
    while (path && text[host + path - 1] == '/') path--;
    return url_has_only_letters(text) && !strpbrk(text, "@?#") && url_take_host(url, text, host) &&
           url_copy(url->path, sizeof url->path, text + host, path);
}
