"$gradc" check "$model" $args --dump=ast 2>/dev/null || true
