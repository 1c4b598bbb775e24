package preferences

import (
	"errors"
	"testing"
)

// A folder that somebody without a home happens to be in says nothing.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv(Environment, "")
	if path, named, err := File(nil); !errors.Is(err, ErrOff) {
		t.Error(path, named, err)
	}
}
