package volume

import "strings"

// oneLineErrors are errors in one line, as upstream has them: "[a, b]". Events show them.
type oneLineErrors []error

func (s oneLineErrors) Unwrap() []error { return s }

func (s oneLineErrors) Error() string {
	var text []string
	for _, err := range s {
		text = append(text, err.Error())
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// inOneLine takes joined errors, which are a line each, into one.
func inOneLine(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 1 {
		return oneLineErrors(joined.Unwrap())
	}
	return err
}
