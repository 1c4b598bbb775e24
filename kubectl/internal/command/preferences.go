package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

// prefer applies the user's kuberc to a command line: it returns the line with
// its alias resolved, and makes root fill in the defaults of flags.
func prefer(c *frame.CLI, root *cobra.Command, args []string) ([]string, error) {
	path, loaded, err := loadPreferences(c, args)
	if err != nil || loaded == nil {
		return args, preferencesError(err)
	}
	for _, command := range loaded.Unknown(root) {
		c.Warn("command %q not found to set kuberc override", command)
	}
	if c.Flags.Plugins, err = loaded.PluginPolicy(); err != nil {
		return nil, preferencesError(err)
	}
	resolved, options, err := loaded.Resolve(root, args)
	if err != nil {
		return nil, preferencesError(err)
	}
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if loaded.Kind == "" {
			c.Detail("kuberc: no preferences found in %s", path)
		}
		if err := preferences.Fill(cmd, options); err != nil {
			return preferencesError(err)
		}
		return before(cmd, args)
	}
	return resolved, nil
}

func preferencesError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("error occurred while applying preferences %w", err)
}

// loadPreferences are the file and what it holds, nil without any. The default file need
// not exist, and if it can't be read, kctl works without it.
func loadPreferences(c *frame.CLI, args []string) (string, *preferences.Preference, error) {
	path, named, err := preferences.File(args)
	if errors.Is(err, preferences.ErrOff) {
		return path, nil, nil
	}
	if err != nil {
		return path, nil, err
	}
	loaded, unknown, err := preferences.Load(path)
	switch {
	case err == nil:
	case named:
		return path, nil, fmt.Errorf("kuberc: %w", err)
	case errors.Is(err, os.ErrNotExist):
		return path, nil, nil
	default:
		c.Warn("kuberc: no preferences loaded from %s: %v", path, err)
		return path, nil, nil
	}
	if unknown != nil {
		c.Warn("kuberc: ignoring strict decoding error in %s: %v", path, unknown)
	}
	return path, loaded, nil
}
