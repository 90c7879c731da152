# Completion of clew for bash: eval "$(clew completion bash)"

_clew_completion() {
    local rest=$COMP_LINE words=() i word glued

    # Behind "exec ... --" the command that is recorded completes its own words.
    if [[ ${COMP_WORDS[1]} == exec ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if declare -F _comp_command_offset > /dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset > /dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
                compopt -o bashdefault -o default
            else
                compopt -o bashdefault -o default
            fi
            return
        done
    fi

    # Bash splits words at ":" and "=". Join the pieces that no space separates.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]} glued=1
        [[ $i == 0 || $rest == [[:space:]]* ]] && glued=0
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
        if ((glued)); then words[-1]+=$word; else words+=("$word"); fi
    done

    local current=${words[-1]} type value paths= IFS=$'\n'
    while IFS=$'\t' read -r type value _; do
        if [[ $type == plain ]]; then COMPREPLY+=("$value"); else paths=$type; fi
    done < <(COMP_WORDS="${words[*]}" _CLEW_COMPLETE=lines_complete "${1/#\~/$HOME}" 2> /dev/null)

    if [[ $paths && ${#COMPREPLY[@]} == 0 ]]; then
        [[ $paths == dir ]] && compopt -o dirnames || compopt -o bashdefault -o default
        return
    elif [[ $paths ]]; then
        COMPREPLY+=($(compgen -f -- "$current"))
        compopt -o filenames
    fi
    # Only what follows the last ":" or "=" is replaced.
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
    if [[ ! $paths && $current != [\'\"]* ]]; then
        for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; done
    fi
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:] ]] && compopt -o nospace
    return 0
}

complete -o nosort -F _clew_completion clew
