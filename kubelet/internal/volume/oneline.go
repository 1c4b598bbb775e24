package volume

import "strings"

// several are errors in one line, as upstream has them: "[a, b]". Events show them.
type several []error

func (s several) Unwrap() []error { return s }

func (s several) Error() string {
	var text []string
	for _, err := range s {
		text = append(text, err.Error())
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// inOneLine takes joined errors, which are a line each, into one.
func inOneLine(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 1 {
		return several(joined.Unwrap())
	}
	return err
}
