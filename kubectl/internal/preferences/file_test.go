package preferences

import (
	"errors"
	"testing"
)

// Without a home directory, no file is read from the current directory.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv(Environment, "")
	if path, named, err := File(nil); !errors.Is(err, ErrOff) {
		t.Error(path, named, err)
	}
}
