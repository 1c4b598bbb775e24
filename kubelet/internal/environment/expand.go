package environment

import (
	"fmt"
	"strings"
)

// maxStrings is the most that Linux accepts as a program's arguments and
// environment together, whatever its limits are (execve(2)), in bytes.
const maxStrings = 6 << 20

// errTooManyStrings stops an expansion that would not fit: a few variables, each of
// which contains the previous one twice, can exceed a machine's memory.
var errTooManyStrings = fmt.Errorf("command, arguments and environment have more than %d bytes, with which Linux starts no program", maxStrings)

// expand replaces $(NAME) by values; $$ is a dollar sign. References to
// undefined names stay as they are.
func (e *Environment) expand(text string) (string, error) {
	return expand(text, func(name string) (string, bool) {
		if value, ok := e.values[name]; ok {
			return value, true
		}
		value, ok := e.services[name]
		return value, ok
	})
}

// ExpandAll expands the references in a command or its arguments.
func (e *Environment) ExpandAll(texts []string) ([]string, error) {
	out, size := make([]string, len(texts)), 0
	for i, text := range texts {
		expanded, err := e.expand(text)
		if size += len(expanded); err != nil || size > maxStrings {
			return nil, errTooManyStrings
		}
		out[i] = expanded
	}
	return out, nil
}

func expand(text string, value func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case out.Len() > maxStrings:
			return "", errTooManyStrings
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && strings.Contains(rest, ")"):
			name, after, _ := strings.Cut(rest[1:], ")")
			if v, ok := value(name); ok {
				out.WriteString(v)
			} else {
				out.WriteString("$(" + name + ")")
			}
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}
