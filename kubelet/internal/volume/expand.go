package volume

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// expand replaces each $(NAME) by the variable's value, and $$ by $. Unlike in
// a command, an unknown variable is an error: the path would not be the one
// that the user meant.
func expand(text string, variables map[string]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if b.Len() >= unix.PathMax {
			return "", fmt.Errorf("the path has more than %d bytes", unix.PathMax-1)
		}
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(text[i:], ')')
			if end < 0 {
				b.WriteByte('$')
				continue
			}
			name := text[i+2 : i+end]
			value, ok := variables[name]
			if !ok {
				return "", fmt.Errorf("missing value for %q", name)
			}
			b.WriteString(value)
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String(), nil
}
