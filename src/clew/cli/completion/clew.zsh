#compdef clew
# Completion of clew for zsh: eval "$(clew completion zsh)", after compinit

_clew() {
    local -i dashes=${words[(i)--]}

    # Behind "exec ... --" the command that is recorded completes its own words.
    if [[ ${words[2]} == exec ]] && (( dashes < CURRENT )); then
        words=("${(@)words[dashes+1,-1]}")
        (( CURRENT -= dashes ))
        _normal
        return
    fi

    local line type value help
    local -a values shown open openshown
    local -i paths=0 directories=0
    for line in "${(@f)$(COMP_WORDS="${(F)${(@Q)words[1,CURRENT]}}" _CLEW_COMPLETE=lines_complete ${(Q)words[1]} 2>/dev/null)}"; do
        IFS=$'\t' read -r type value help <<< "$line"
        case $type in
            plain)
                help=${value}${help:+  -- $help}
                if [[ $value == *[/:] ]]; then open+=("$value") openshown+=("$help")
                else values+=("$value") shown+=("$help"); fi ;;
            file) paths=1 ;;
            dir) directories=1 ;;
        esac
    done
    (( $#values )) && compadd -l -V clew -d shown -a values
    (( $#open )) && compadd -l -V clew-open -S '' -d openshown -a open
    [[ $PREFIX == --*=* ]] && compset -P '--*='
    (( paths )) && _files
    (( directories )) && _files -/
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _clew "$@"
else
    compdef _clew clew
fi
