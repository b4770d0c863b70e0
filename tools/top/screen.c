/* screen.c — see screen.h. */
#define NCURSES_WIDECHAR 1
#include "tools/top/screen.h"
#include "tools/reader/source.h"

#include <curses.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

enum { ESCAPE_MS = 50, COLUMNS_MOST = 1024, COLOUR_CURVE = 1, COLOUR_GREW = 2 };

static SCREEN *terminal;
static bool coloured;
static volatile sig_atomic_t over, continued;

static void note_end(int number) {
    (void)number;
    over = 1;
}

static void note_continued(int number) {
    (void)number;
    continued = 1;
}

/* Sets handlers without SA_RESTART, so that a signal ends the wait for a key. SIGTSTP and SIGWINCH need no handlers
 * here, because ncurses handles these signals. */
static void screen_listen(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = note_end};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], &action, NULL);
    action.sa_handler = note_continued;
    sigaction(SIGCONT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void screen_colours(void) {
    const char *no_color = getenv("NO_COLOR");
    coloured = !(no_color && *no_color) && has_colors() && start_color() == OK && use_default_colors() == OK;
    if (!coloured) return;
    init_pair(COLOUR_CURVE, COLOR_CYAN, -1);
    init_pair(COLOUR_GREW, COLOR_RED, -1);
}

/* Text is UTF-8, whatever the locale says. */
static void screen_locale(void) {
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
}

static int held_back = -1, real_error = -1;

/* While the screen is on, messages on standard error would spoil the picture. They go to a file in memory. If no such
 * file can be made, standard error stays as it is. */
static void error_hold(void) {
    if (held_back >= 0) return;
    fflush(stderr);
    held_back = memfd_create("memstow-top", MFD_CLOEXEC);
    real_error = held_back < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (real_error >= 0 && dup2(held_back, STDERR_FILENO) >= 0) return;
    if (held_back >= 0) close(held_back);
    held_back = -1;
}

/* Writes to the real standard error what was held back. A signal handler may call it. */
static void error_show(void) {
    char bytes[4096];
    if (held_back < 0) return;
    dup2(real_error, STDERR_FILENO);
    lseek(held_back, 0, SEEK_SET);
    for (ssize_t got; (got = read(held_back, bytes, sizeof bytes)) > 0;)
        if (write(STDERR_FILENO, bytes, (size_t)got) != got) break;
}

static void error_release(void) {
    if (held_back < 0) return;
    fflush(stderr);
    error_show();
    close(real_error);
    close(held_back);
    held_back = real_error = -1;
}

/* --- the end in a signal handler, which must not call ncurses --- */

static struct termios modes;
static char ending[256];
static size_t ending_length;

/* Adds a capability of the terminal to `ending`, without delays such as "$<5>", which no terminal of today needs. */
static void ending_add(const char *capability) {
    const char *text = tigetstr(capability);
    if (!text || text == (char *)-1) return;
    for (; *text && ending_length < sizeof ending; text++) {
        const char *delay_end = strncmp(text, "$<", 2) == 0 ? strchr(text, '>') : NULL;
        if (delay_end)
            text = delay_end;
        else
            ending[ending_length++] = *text;
    }
}

static void ending_prepare(void) {
    static const char *const capabilities[] = {"rmkx", "sgr0", "cnorm", "rmcup"};
    ending_length = 0;
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) ending_add(capabilities[i]);
}

static void screen_abandon(void) {
    ssize_t written = write(STDOUT_FILENO, ending, ending_length);
    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    error_show();
}

static int screen_refuse(char *error, size_t size, const char *why) {
    snprintf(error, size, "%s", why);
    return -1;
}

/* Whether the cursor can be moved to any place. */
static bool has_cursor(void) {
    const char *move = tigetstr("cup");
    return move && move != (char *)-1;
}

int screen_begin(char *error, size_t size) {
    const char *term = getenv("TERM");
    char why[160];
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return screen_refuse(error, size, "it needs a terminal");
    snprintf(why, sizeof why, "the terminal '%.60s' (TERM) cannot show it", term ? term : "");
    if (!term || !*term || strcmp(term, "dumb") == 0) return screen_refuse(error, size, why);
    screen_locale();
    tcgetattr(STDIN_FILENO, &modes);
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal) return screen_refuse(error, size, why);
    if (!has_cursor()) {
        screen_end();
        return screen_refuse(error, size, why);
    }
    screen_colours();
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    screen_listen();
    error_hold();
    ending_prepare();
    source_before_end = screen_abandon;
    return 0;
}

void screen_end(void) {
    if (!terminal) return;
    endwin();
    source_before_end = NULL;
    delscreen(terminal);
    terminal = NULL;
    error_release();
}

int screen_lines(void) { return LINES; }
int screen_columns(void) { return COLS; }
void screen_clear(void) { erase(); }
bool screen_is_over(void) { return over; }
const char *screen_version(void) { return curses_version(); }

void screen_show(void) {
    if (continued) { /* top was stopped, and the terminal may show other text now */
        continued = 0;
        reset_prog_mode();
        clearok(curscr, TRUE);
    }
    /* refresh() ignores SIGTSTP, so a Ctrl-Z during it would be lost. A blocked SIGTSTP is delivered afterwards */
    sigset_t stop, mask;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_BLOCK, &stop, &mask);
    refresh();
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

static attr_t attributes_of(enum screen_style style) {
    switch (style) {
    case SCREEN_BOLD:
        return A_BOLD;
    case SCREEN_BAR:
        return A_REVERSE;
    case SCREEN_CURVE:
        return coloured ? COLOR_PAIR(COLOUR_CURVE) : 0;
    case SCREEN_GREW:
        return coloured ? COLOR_PAIR(COLOUR_GREW) : A_BOLD;
    case SCREEN_FAINT:
        return A_DIM;
    default:
        return 0;
    }
}

/* Copies as much of the text as fits into the columns; a character may take two columns. Returns the columns that are
 * used. */
static int screen_cut(const char *text, wchar_t *to, int columns) {
    mbstate_t state = {0};
    int used = 0, count = 0;
    size_t left = strlen(text);
    while (left && count < COLUMNS_MOST - 1) {
        wchar_t character;
        size_t length = mbrtowc(&character, text, left, &state);
        if (length == (size_t)-1 || length == (size_t)-2 || length == 0) {
            character = L'?';
            length = 1;
            memset(&state, 0, sizeof state);
        }
        int width = wcwidth(character);
        if (width < 0) character = L'?', width = 1;
        if (used + width > columns) break;
        to[count++] = character;
        used += width;
        text += length;
        left -= length;
    }
    to[count] = 0;
    return used;
}

void screen_put(int line, const char *text, enum screen_style style) {
    wchar_t wide[COLUMNS_MOST];
    if (line < 0 || line >= LINES) return;
    int used = screen_cut(text, wide, COLS);
    attrset(attributes_of(style));
    mvaddwstr(line, 0, wide);
    if (style == SCREEN_BAR && used < COLS) hline(' ' | A_REVERSE, COLS - used);
    attrset(0);
}

/* --- reading keys --- */

static int key_of_code(wint_t code) {
    static const struct {
        wint_t code;
        int key;
    } keys[] = {{KEY_UP, KEY_ARROW_UP},       {KEY_DOWN, KEY_ARROW_DOWN}, {KEY_LEFT, KEY_ARROW_LEFT},
                {KEY_RIGHT, KEY_ARROW_RIGHT}, {KEY_PPAGE, KEY_PAGE_UP},   {KEY_NPAGE, KEY_PAGE_DOWN},
                {KEY_HOME, KEY_FIRST},        {KEY_END, KEY_LAST},        {KEY_BACKSPACE, KEY_ERASE},
                {KEY_ENTER, KEY_ENTER_LINE},  {KEY_RESIZE, KEY_RESIZED}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].code == code) return keys[i].key;
    return KEY_NONE;
}

static int key_waiting(void) {
    wint_t code;
    int got = get_wch(&code);
    if (got == KEY_CODE_YES) return key_of_code(code);
    if (got == ERR) return KEY_NONE;
    return code == 127 || code == '\b' ? KEY_ERASE : (int)code;
}

int screen_key(int milliseconds) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int key = key_waiting();
    if (key != KEY_NONE || over) return key;
    if (poll(&input, 1, milliseconds < 0 ? 0 : milliseconds) > 0 && input.revents & (POLLHUP | POLLERR)) over = 1;
    return key_waiting();
}
