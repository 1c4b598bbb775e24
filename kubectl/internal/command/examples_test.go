package command

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// Every verb has examples in its help, and their verbs, flags and values are
// valid.
func TestExamplesMakeSense(t *testing.T) {
	root := newRoot(frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, clock.RealClock{}))
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.Hidden || !cmd.Runnable() || cmd.HasSubCommands() && cmd.Example == "" {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			checkExample(t, cmd, line)
		}
	}
	walk(root)
}

func checkExample(t *testing.T, cmd *cobra.Command, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	for _, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '|' || r == '(' || r == ')' || r == '>' }) {
		words := strings.Fields(part)
		if len(words) == 0 || words[0] != "kctl" || strings.ContainsAny(part, `'"`) {
			continue // only a shell can read quotes
		}
		root := newRoot(frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, clock.RealClock{}))
		found, rest, err := root.Find(words[1:])
		if err != nil {
			t.Errorf("%s shows %q: %v", cmd.CommandPath(), line, err)
			continue
		}
		if found.CommandPath() == root.CommandPath() {
			t.Errorf("%s shows %q: there is no such verb", cmd.CommandPath(), line)
			continue
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%s shows %q: %v", cmd.CommandPath(), line, err)
		}
	}
}
