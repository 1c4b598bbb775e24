package command

import (
	"io"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
)

// newCompletion prints the scripts by which shells complete command lines. They
// call kctl itself, which knows the verbs, types and names.
func newCompletion(*frame.CLI) *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)",
		Long: "Output shell completion code for the specified shell (bash, zsh, fish, or powershell).\n\n" +
			"For bash it needs the package bash-completion (apt install bash-completion, and a new shell); for zsh, compinit.",
		Example: "  source <(kctl completion bash)\n" +
			"  alias k=kctl; complete -o default -F __start_kctl k\n" +
			"  kctl completion zsh > \"${fpath[1]}/_kctl\"\n" +
			"  kctl completion fish | source",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return frame.UsageError(cmd, "Shell not specified.")
			}
			if len(args) > 1 {
				return frame.UsageError(cmd, "Too many arguments. Expected only the shell type.")
			}
			script, ok := scripts[args[0]]
			if !ok {
				return frame.UsageError(cmd, "Unsupported shell type %q.", args[0])
			}
			return script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
