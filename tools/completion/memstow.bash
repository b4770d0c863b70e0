# bash completion of memstow. The words come from the command's own help, so that they are those of its version.
_memstow() {
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} index options
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
        options=$(memstow --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
        [ "$COMP_CWORD" -eq 2 ] || options+=" help --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
        return
    fi
    for ((index = 2; index < COMP_CWORD; index++)); do
        if [ "${COMP_WORDS[index]}" = -- ]; then # the program that is to run, and its arguments
            if declare -F _command_offset >/dev/null; then _command_offset $((index + 1)); fi
            return
        fi
    done
    case $current in
        -*) options=$(memstow "$command" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*=?|^ +-[a-z]\b' | sort -u)
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
            if [ "${#COMPREPLY[@]}" -eq 1 ] && [ "${COMPREPLY[0]: -1}" = = ]; then compopt -o nospace; fi ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current")
           compopt -o filenames
           case $command in
               stow | restore | release | trigger | snapshot | top | watch | report | leaks | owners | decisions | \
                   metrics | push)
                   mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(memstow ps 2>/dev/null |
                       awk '$1 ~ /^[0-9]+$/ { print $1 }')" -- "$current") ;;
           esac ;;
    esac
}
complete -F _memstow memstow
