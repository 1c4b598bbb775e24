package frame

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OneName is the one argument of verbs that take a name.
func OneName(cmd *cobra.Command, args []string) (string, error) {
	if len(args) != 1 {
		return "", UsageError(cmd, "exactly one NAME is required, got %d", len(args))
	}
	return args[0], nil
}

// Before adds a check to those that come before a verb does anything.
func Before(cmd *cobra.Command, check func() error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// flagError is a flag that could not be read.
type flagError struct {
	cmd *cobra.Command
	err error
}

// FlagError is what cobra calls for a flag that could not be read.
func FlagError(cmd *cobra.Command, err error) error { return &flagError{cmd, err} }

func (e *flagError) Error() string {
	return fmt.Sprintf("%v%s\nSee '%s --help' for usage.", e.err, e.similarFlags(), e.cmd.CommandPath())
}

// similarFlags names flags similar to a misspelt one. It uses the similarity
// that cobra uses for commands.
func (e *flagError) similarFlags() string {
	var unknown *pflag.NotExistError
	if !errors.As(e.err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	e.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		words.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	near := words.SuggestionsFor(unknown.GetSpecifiedName())
	if len(near) == 0 {
		return ""
	}
	return "\nDid you mean --" + strings.Join(near, " or --") + "?"
}

func (e *flagError) Unwrap() error { return e.err }

// NoArgs refuses arguments of a verb that takes none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError(cmd, "unexpected arguments: %v", args)
	}
	return nil
}

// UsageError is a command line that makes no sense.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s\nSee '%s -h' for help and examples", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// Group is a verb that has verbs below it.
func Group(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " SUBCOMMAND", Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UsageError(cmd, "unknown command %q%s", strings.Join(args, " "), nearVerbs(cmd, args[0]))
			}
			// What was asked for was not done: the help is not an answer, only help.
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), ExitCode(ExitError))
		},
	}
}

// UnknownVerb refuses a verb that does not exist, and names similar ones.
func UnknownVerb(root *cobra.Command, name string) error {
	return fmt.Errorf("unknown command %q for %q%s", name, root.CommandPath(), nearVerbs(root, name))
}

// nearVerbs names the verbs that a misspelt one may stand for.
func nearVerbs(parent *cobra.Command, name string) string {
	parent.SuggestionsMinimumDistance = 2
	near := parent.SuggestionsFor(name)
	if len(near) == 0 {
		return ""
	}
	return "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t") + "\n"
}
