// A static table that gets an entry in each run.
#include "_runs.h"

#include <map>
#include <string>

__attribute__((noinline)) static void note(int run) {
    static std::map<int, std::string> table;
    table[run] = std::string(40000, 'x');
}

static void leaky(int run) {
    enter("Leaky");
    note(run);
    leave();
}

int main(int count, char **arguments) { return do_runs(count, arguments, leaky); }
