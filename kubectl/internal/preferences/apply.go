package preferences

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Resolve replaces an alias by its command: command, prepended arguments, those
// of the command line, appended ones. options are the default flags of the
// called command: the alias's own, or else those of the command's defaults.
// Commands of root come before aliases of the same name; aliases of aliases are
// refused, as in kubectl.
func (p *Preference) Resolve(root *cobra.Command, args []string) (resolved []string, options []Option, err error) {
	if err := p.validateAliases(); err != nil {
		return nil, nil, err
	}
	if called, _, err := root.Find(args); err == nil && called != root {
		return args, p.defaults(called), nil
	}
	if i := slices.IndexFunc(args, completes) + 1; i > 0 {
		return append(args[:i:i], p.typed(root, args[i:])...), nil, nil
	}
	alias, rest := p.alias(root, args)
	if alias == nil {
		return args, p.defaults(root), nil // root says what is wrong with it
	}
	if !has(root, alias.Command) {
		return nil, nil, fmt.Errorf("command %q not found to set alias %q", alias.Command, alias.Name)
	}
	return slices.Concat(strings.Fields(alias.Command), alias.PrependArgs, rest, alias.AppendArgs), alias.Options, nil
}

// completes tells whether a word is the verb by which shells ask for completions.
func completes(word string) bool {
	return word == cobra.ShellCompRequestCmd || word == cobra.ShellCompNoDescRequestCmd
}

// typed replaces an alias in a command line that a shell is to complete. Its appended
// arguments would come behind the word that is being typed, and are left out.
func (p *Preference) typed(root *cobra.Command, args []string) []string {
	if called, _, err := root.Find(args); err == nil && called != root {
		return args
	}
	alias, rest := p.alias(root, args)
	if alias == nil || len(rest) == 0 { // the alias is the word that is being typed
		return args
	}
	return slices.Concat(strings.Fields(alias.Command), alias.PrependArgs, rest)
}

// alias is the one that a command line calls, nil if it calls none, with the rest of
// the line.
func (p *Preference) alias(root *cobra.Command, args []string) (called *Alias, rest []string) {
	names := &cobra.Command{} // what root knows, and the aliases besides
	names.PersistentFlags().AddFlagSet(root.PersistentFlags())
	for _, alias := range p.Aliases {
		names.AddCommand(&cobra.Command{Use: alias.Name})
	}
	found, rest, err := names.Find(args)
	if err != nil || found == names {
		return nil, nil
	}
	i := slices.IndexFunc(p.Aliases, func(a Alias) bool { return a.Name == found.Name() })
	return &p.Aliases[i], rest
}

// has tells whether a command is one of root's.
func has(root *cobra.Command, path string) bool {
	words := strings.Fields(path)
	found, _, err := root.Find(words)
	return err == nil && pathOf(found) == strings.Join(words, " ")
}

// pathOf is a command's name in the file: without the program's name.
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// defaults are the options of all entries for a command; of two for one flag
// the first counts.
func (p *Preference) defaults(cmd *cobra.Command) []Option {
	var all []Option
	for _, each := range p.Defaults {
		if strings.Join(strings.Fields(each.Command), " ") == pathOf(cmd) {
			all = append(all, each.Options...)
		}
	}
	return all
}

// Unknown are the commands with defaults that root doesn't have.
func (p *Preference) Unknown(root *cobra.Command) []string {
	var unknown []string
	for _, each := range p.Defaults {
		if !has(root, each.Command) {
			unknown = append(unknown, each.Command)
		}
	}
	return unknown
}

// Fill sets those flags of a command that its parsed command line did not.
func Fill(cmd *cobra.Command, options []Option) error {
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, option := range options {
		if strings.HasPrefix(option.Name, "-") {
			return fmt.Errorf("flag name %s should be in long form without dashes", option.Name)
		}
		if cmd.Flags().Lookup(option.Name) == nil {
			return fmt.Errorf("invalid flag %s for command %s", option.Name, pathOf(cmd))
		}
		if given[option.Name] {
			continue
		}
		if err := cmd.Flags().Set(option.Name, option.Default); err != nil {
			return fmt.Errorf("could not apply value %s to flag %s in command %s err: %w", option.Default, option.Name, pathOf(cmd), err)
		}
	}
	return nil
}
