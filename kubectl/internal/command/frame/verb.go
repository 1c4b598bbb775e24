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

// flagError is a flag that could not be read.
type flagError struct {
	cmd *cobra.Command
	err error
}

// FlagError is what cobra calls for a flag that could not be read.
func FlagError(cmd *cobra.Command, err error) error { return &flagError{cmd, err} }

func (e *flagError) Error() string {
	return fmt.Sprintf("%v%s\nSee '%s --help' for usage.", e.err, e.near(), e.cmd.CommandPath())
}

// near names the flags that a misspelt one may stand for. Which words are near
// each other is cobra's to say, which it does of commands.
func (e *flagError) near() string {
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
				return UnknownVerb(cmd, args[0])
			}
			// What was asked for was not done: the help is no answer, but help.
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), ExitCode(ExitError))
		},
	}
}

// UnknownVerb refuses a verb that is not there, and names those that are near it.
func UnknownVerb(root *cobra.Command, name string) error {
	message := fmt.Sprintf("unknown command %q for %q", name, root.CommandPath())
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		message += "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t") + "\n"
	}
	return fmt.Errorf("%s", message)
}
