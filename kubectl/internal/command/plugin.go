package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// pluginPrefixes are the prefixes of programs that add verbs to kctl: kctl-NAME on the
// PATH is `kctl NAME`, and so is kubectl-NAME if there is no kctl-NAME.
var pluginPrefixes = []string{"kctl-", "kubectl-"}

// plugin finds the program of a verb that kctl itself does not have. Of
// `kctl a b c`, kctl-a-b-c is asked for first, then kubectl-a-b-c, then kctl-a-b, and so
// on, but with no fewer words than least; what is left over are its arguments. Dashes
// within a word are underscores in the program's name, as krew installs them:
// `kctl view-secret` is kubectl-view_secret.
func plugin(args []string, least int) (path string, rest []string, found bool) {
	var words []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			break
		}
		words = append(words, strings.ReplaceAll(arg, "-", "_"))
	}
	for n := len(words); n >= least; n-- {
		verb := strings.Join(words[:n], "-")
		if strings.ContainsRune(verb, os.PathSeparator) {
			continue
		}
		for _, prefix := range pluginPrefixes {
			// One in a directory that the PATH names relatively counts, as in kubectl.
			if path, err := exec.LookPath(prefix + verb); err == nil || errors.Is(err, exec.ErrDot) {
				return path, args[n:], true
			}
		}
	}
	return "", nil, false
}

// leastWords keeps kubectl-create from being taken for create, where plugins add verbs.
func leastWords(args []string) int {
	if args[0] == "create" {
		return 2
	}
	return 1
}

// runPlugin puts a plugin in kctl's place, so that terminal, signals and exit
// code are its own. It returns only where there is none.
func runPlugin(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	if own(root, args) != nil {
		return nil
	}
	path, rest, found := plugin(args, leastWords(args))
	if !found {
		return nil
	}
	//nolint:gosec // the user's own program
	return fmt.Errorf("running %s: %w", path, syscall.Exec(path, append([]string{path}, rest...), environ()))
}

// own is kctl's own verb that words begin with; nil if there is none. Among verbs
// with verbs below them, plugins can add only to create, as in kubectl.
func own(root *cobra.Command, words []string) *cobra.Command {
	known, rest, err := root.Find(words)
	if err != nil || known == root {
		return nil
	}
	if known.CommandPath() == root.Name()+" create" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return nil
	}
	return known
}

// pathVariable tells plugins which program has called them.
const pathVariable = "KUBECTL_PATH"

func environ() []string {
	all := slices.DeleteFunc(os.Environ(), func(each string) bool { return strings.HasPrefix(each, pathVariable+"=") })
	// Under the name by which it was called: kctl behaves accordingly.
	if self, err := exec.LookPath(os.Args[0]); err == nil {
		if self, err = filepath.Abs(self); err == nil {
			all = append(all, pathVariable+"="+self)
		}
	}
	return all
}

func newPlugin(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("plugin", "Provides utilities for interacting with plugins")
	var nameOnly bool
	list := &cobra.Command{
		Use: "list", Short: "List all visible plugin executables on a user's PATH", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listPlugins(c, cmd.Root(), nameOnly) },
	}
	list.Flags().BoolVar(&nameOnly, "name-only", false, "If true, display only the binary name of each plugin, rather than its full path")
	cmd.AddCommand(list)
	return cmd
}

// listPlugins warns about those that never run, because they can't be executed, another
// of the same name comes first on the PATH, or kctl has a verb of that name.
func listPlugins(c *frame.CLI, root *cobra.Command, nameOnly bool) error {
	found := plugins()
	if len(found) == 0 {
		return fmt.Errorf("unable to find any %s plugins in your PATH", c.Name)
	}
	fmt.Fprint(c.Out, "The following compatible plugins are available:\n\n")
	seen := map[string]string{}
	warnings := 0
	warn := func(format string, args ...any) {
		warnings++
		fmt.Fprintf(c.Err, "  - warning: "+format+"\n", args...)
	}
	for _, path := range found {
		name := filepath.Base(path)
		if nameOnly {
			fmt.Fprintln(c.Out, name)
		} else {
			fmt.Fprintln(c.Out, path)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			warn("%s identified as a %s plugin, but it is not executable", path, c.Name)
		}
		if earlier := seen[name]; earlier != "" {
			warn("%s is overshadowed by a similarly named plugin: %s", path, earlier)
		} else {
			seen[name] = path
		}
		if verb := own(root, strings.Split(name, "-")[1:]); verb != nil {
			warn("%s overwrites existing command: %q", name, verb.CommandPath())
		}
	}
	switch warnings {
	case 0:
		return nil
	case 1:
		return errors.New("one plugin warning was found")
	}
	return fmt.Errorf("%d plugin warnings were found", warnings)
}

func isPlugin(name string) bool {
	return slices.ContainsFunc(pluginPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// plugins are the files on the PATH that are named as plugins.
func plugins() []string {
	var found []string
	searched := map[string]bool{}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(dir)
		if err != nil || searched[dir] {
			continue // directories that are not there, or are there twice, are common on PATHs
		}
		searched[dir] = true
		for _, entry := range entries {
			if isPlugin(entry.Name()) && !entry.IsDir() {
				found = append(found, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return found
}
