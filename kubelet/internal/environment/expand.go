package environment

import (
	"errors"
	"fmt"
	"strings"
)

// maxStrings is the most that Linux accepts as a program's arguments and
// environment together, whatever its limits are (execve(2)), in bytes.
const maxStrings = 6 << 20

// errTooManyStrings stops an expansion that would not fit: a few variables, each of
// which contains the previous one twice, can exceed a machine's memory.
var errTooManyStrings = fmt.Errorf("command, arguments and environment have more than %d bytes, with which Linux starts no program",
	maxStrings)

// ErrTooLong is the error of an expansion whose result would exceed its limit.
var ErrTooLong = errors.New("too long")

// Expand replaces each $(NAME) by its value, and $$ by a dollar sign. All other
// dollar signs stay. It fails with ErrTooLong, or with value's error.
func Expand(text string, limit int, value func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case out.Len() > limit:
			return "", ErrTooLong
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && strings.Contains(rest, ")"):
			name, after, _ := strings.Cut(rest[1:], ")")
			v, err := value(name)
			if err != nil {
				return "", err
			}
			out.WriteString(v)
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

// expand replaces references by values; those to undefined names stay as they are.
func (e *Environment) expand(text string) (string, error) {
	expanded, err := Expand(text, maxStrings, func(name string) (string, error) {
		if value, ok := e.values[name]; ok {
			return value, nil
		}
		if value, ok := e.services[name]; ok {
			return value, nil
		}
		return "$(" + name + ")", nil
	})
	if err != nil {
		return "", errTooManyStrings
	}
	return expanded, nil
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
