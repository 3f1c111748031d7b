# Completion of heed's tools for bash. It asks `TOOL --help`, so it knows what the installed tool knows.
# Installed once under each tool's name, where bash-completion finds it; or: source scripts/completion/heed.bash

# What --help writes for an option's value: nothing for a flag.
_heed_value() {
  local help=$1 option=$2 pattern
  case $option in
    --*) pattern="^  (-., |    )$option" ;;
    *) pattern="^  ($option, )--[[:alnum:]-]+" ;;
  esac
  sed -nE "s/$pattern( \[?([^ ]+)( .*)?)?\$/\3/p" <<<"$help" | head -n 1
}

# Sets COMPREPLY to those of the words that begin as the current one.
_heed_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_heed() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} help value
  # bash makes three words of --option=value.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  help=$("${COMP_WORDS[0]/#\~/$HOME}" --help 2>/dev/null) || return
  COMPREPLY=()
  if [[ $previous == -* ]]; then
    value=$(_heed_value "$help" "${previous//_/-}")
    if [[ $value == *'|'* ]]; then
      _heed_words "$(tr '|[]' '   ' <<<"$value")" "$current"
      return
    elif [[ $value == N || $value == X || $value == CODE || $value == REGEX || $value == STR ]]; then
      return
    fi
  fi
  if [[ $current == -* ]]; then
    local all=$(sed -nE 's/^  (-., |    )(--[[:alnum:]-]+).*/\2/p' <<<"$help")
    # Negations only once they are asked for: they double the list.
    if [[ $current == --no* ]]; then
      all+=" $(sed -nE 's/^  (-., |    )--([[:alnum:]-]+)(  .*)?$/--no-\2/p' <<<"$help" | grep -vxE -- '--no-(help|version|dump-config)')"
    fi
    _heed_words "$all" "$current"
    return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

case ${BASH_SOURCE[0]##*/} in
  heed.bash) complete -F _heed tokenize build-vocab train translate bleu inspect-attention ;;
  *) complete -F _heed "${BASH_SOURCE[0]##*/}" ;;
esac
