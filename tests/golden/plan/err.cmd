"$gradc" plan "$model" $args 2>&1 >/dev/null
