"$gradc" build "$model" $args -q --target cuda --emit cuda=- | sed '1,/^\/\* ---- functions/d'
