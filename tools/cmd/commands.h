/* commands.h — the subcommands. Each takes its own arguments and returns an exit code (complain.h). */
#ifndef MEMSTOW_COMMANDS_H
#define MEMSTOW_COMMANDS_H

int cmd_version(int argc, char **argv); /* for --version */
int cmd_run(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_decisions(int argc, char **argv);
int cmd_leaks(int argc, char **argv);
int cmd_owners(int argc, char **argv);
int cmd_stow(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_release(int argc, char **argv);
int cmd_trigger(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_reap(int argc, char **argv);
int cmd_lifecycle(int argc, char **argv);

#endif
