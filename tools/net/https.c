/* https.c — see https.h. The functions and numbers are those of curl/curl.h, whose ABI has not changed since 2006. */
#include "tools/net/https.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GLOBAL_DEFAULT = 3,
    OPTION_URL = 10002,
    OPTION_ERROR = 10010,
    OPTION_BODY = 10015,
    OPTION_HEADERS = 10023,
    OPTION_AUTHORITIES = 10065,
    OPTION_WRITE = 20011,
    OPTION_NO_SIGNAL = 99,
    OPTION_WITHIN_MS = 155,
    OPTION_PROTOCOLS = 181,
    OPTION_QUICK_EXIT = 322, /* since version 7.87: do not wait for a look-up that is out of time */
    OPTION_BODY_LENGTH = 30120,
    ONLY_HTTPS = 2,
    INFO_STATUS = 0x200002,
    ERROR_SIZE = 256
};

static struct {
    int (*global_init)(long);
    void *(*begin)(void);
    int (*option)(void *, int, ...);
    int (*perform)(void *);
    int (*info)(void *, int, ...);
    void (*end)(void *);
    void *(*append)(void *, const char *);
    void (*free_list)(void *);
} curl;

static int https_find(void *library) {
    static const struct {
        const char *name;
        void *to;
    } functions[] = {{"curl_global_init", &curl.global_init}, {"curl_easy_init", &curl.begin},
                     {"curl_easy_setopt", &curl.option},      {"curl_easy_perform", &curl.perform},
                     {"curl_easy_getinfo", &curl.info},       {"curl_easy_cleanup", &curl.end},
                     {"curl_slist_append", &curl.append},     {"curl_slist_free_all", &curl.free_list}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found) return 0;
        memcpy(functions[i].to, &found, sizeof found);
    }
    return curl.global_init(GLOBAL_DEFAULT) == 0;
}

int https_is_there(void) {
    static int found = -1;
    if (found < 0) {
        void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
        if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
        found = library && https_find(library);
    }
    return found;
}

/* Drops the answer's body, because the server's status says enough. */
static size_t https_forget(char *data, size_t size, size_t count, void *to) {
    (void)data, (void)to;
    return size * count;
}

/* Returns the request's header lines as a list for libcurl, or NULL if there is no memory. */
static void *https_headers(const struct http_request *request) {
    void *list = curl.append(NULL, "Content-Type: application/json");
    char line[2048];
    for (const char *text = request->headers; list && *text; text += strcspn(text, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\r\n"), text);
        void *longer = curl.append(list, line);
        if (!longer) curl.free_list(list);
        list = longer;
    }
    return list;
}

static void https_choose(void *handle, const struct http_request *request, const char *authorities) {
    char url[2048];
    const char *form = strchr(request->host, ':') ? "https://[%s]:%u%s" : "https://%s:%u%s";
    snprintf(url, sizeof url, form, request->host, request->port, request->path);
    curl.option(handle, OPTION_URL, url);
    curl.option(handle, OPTION_PROTOCOLS, (long)ONLY_HTTPS);
    curl.option(handle, OPTION_NO_SIGNAL, 1L);
    curl.option(handle, OPTION_WITHIN_MS, (long)(request->within_ns / 1000000));
    curl.option(handle, OPTION_QUICK_EXIT, 1L);
    curl.option(handle, OPTION_BODY, request->body);
    curl.option(handle, OPTION_BODY_LENGTH, (long long)request->length);
    curl.option(handle, OPTION_WRITE, https_forget);
    if (authorities) curl.option(handle, OPTION_AUTHORITIES, authorities);
}

void https_send(struct http_answer *answer, const struct http_request *request, const char *authorities) {
    static char error[ERROR_SIZE];
    long status = 0;
    *answer = (struct http_answer){.why = "libcurl cannot begin"};
    void *handle = curl.begin(), *headers = handle ? https_headers(request) : NULL;
    if (headers) {
        snprintf(error, sizeof error, "libcurl failed");
        https_choose(handle, request, authorities);
        curl.option(handle, OPTION_HEADERS, headers);
        curl.option(handle, OPTION_ERROR, error);
        if (curl.perform(handle) == 0) curl.info(handle, INFO_STATUS, &status);
        answer->status = (int)status;
        answer->why = error;
        curl.free_list(headers);
    }
    if (handle) curl.end(handle);
}
