package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/kubectl/internal/bootstrap"
	"kctl/kubectl/internal/certificates"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

func newBootstrapToken(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("token", "Manage bootstrap tokens, with which machines join the cluster")
	cmd.Long = `Manage bootstrap tokens, with which machines join the cluster: secrets of type
bootstrap.kubernetes.io/token in kube-system. A token can be used by any number of
machines until it expires or is deleted.`
	cmd.AddCommand(newTokenCreate(c), newTokenList(c), newTokenDelete(c), &cobra.Command{
		Use: "generate", Short: "Print a random token, without sending it to any server", Args: frame.NoArgs,
		Example: "  kctl token create $(kctl token generate)",
		Run:     func(*cobra.Command, []string) { fmt.Fprintln(c.Out, bootstrap.NewToken()) },
	})
	return cmd
}

func newTokenCreate(c *frame.CLI) *cobra.Command {
	var usages, groups []string
	var description string
	var ttl time.Duration
	var join joinLine
	cmd := &cobra.Command{
		Use: "create [TOKEN]", Short: "Create a token with which machines can join",
		Long: `Create a bootstrap token, a random one unless one is given, and grant its default
group the rights needed for joining. The token is printed, by itself or as part of the
command line that joins a machine.`,
		Example: `  # What to type on a machine that is to join
  kctl token create --print-join-command

  # With a network between the nodes that kubelets make themselves
  kctl token create --print-join-command --node-network routes

  # For a rack that is installed this week
  kctl token create --ttl 168h --description "rack 7"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token := bootstrap.NewToken()
			if len(args) == 1 {
				var err error
				if token, err = bootstrap.ParseToken(args[0]); err != nil {
					return err
				}
			}
			token.Usages, token.Groups, token.Description = usages, groups, description
			switch {
			case ttl < 0:
				return errors.New("--ttl must not be negative; 0 makes a token that never expires")
			case ttl > 0:
				token.Expires = c.Clock.Now().Add(ttl)
			}
			if err := errors.Join(token.Validate(), join.validate()); err != nil {
				return err
			}
			return createBootstrapToken(cmd.Context(), c, token, join)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&ttl, "ttl", 24*time.Hour, "lifetime of the token, such as 1h or 30m; 0 for no limit")
	f.StringSliceVar(&usages, "usages", slices.Clone(bootstrap.Usages), "what the token may be used for: signing, authentication")
	f.StringSliceVar(&groups, "groups", []string{bootstrap.DefaultGroup},
		"groups of clients that use the token, in addition to system:bootstrappers")
	f.StringVar(&description, "description", "", "description of the token, for people")
	f.BoolVar(&join.print, "print-join-command", false, "print the complete command line that joins a machine, instead of only the token")
	f.StringVar(&join.nodeNetwork, "node-network", "",
		"with --print-join-command: let kubelets set up the network between nodes, with routes or vxlan, and grant "+
			"them the rights that this needs")
	return cmd
}

// joinLine holds the options of the command line that joins a machine.
type joinLine struct {
	print       bool
	nodeNetwork string
}

func (j joinLine) validate() error {
	if j.nodeNetwork != "" && !j.print {
		return errors.New("--node-network requires --print-join-command")
	}
	return bootstrap.ValidateNodeNetwork(j.nodeNetwork)
}

func createBootstrapToken(ctx context.Context, c *frame.CLI, token *bootstrap.Token, join joinLine) error {
	client, err := c.Server()
	if err != nil {
		return err
	}
	line := token.String()
	if join.print {
		if line, err = joinCommand(c, token); err != nil {
			return err
		}
	}
	if join.nodeNetwork != "" {
		line += " --node-network " + join.nodeNetwork
		if err := bootstrap.GrantNodeNetwork(ctx, client); err != nil {
			return err
		}
	}
	if slices.Contains(token.Groups, bootstrap.DefaultGroup) {
		if err := bootstrap.GrantJoining(ctx, client); err != nil {
			return err
		}
	}
	if err := client.Resource(core.Secrets, core.NamespaceSystem).Create(ctx, token.Object(), nil); err != nil {
		return err
	}
	fmt.Fprintln(c.Out, line)
	return nil
}

// joinCommand is what to type on a machine that is to join with the token.
func joinCommand(c *frame.CLI, token *bootstrap.Token) (string, error) {
	target, err := c.Kubeconfig()
	if err != nil {
		return "", err
	}
	ca := target.Client.CAData
	if file := target.Client.CAFile; len(ca) == 0 && file != "" {
		if ca, err = os.ReadFile(file); err != nil {
			return "", err
		}
	}
	hashes, err := certificates.Hashes(ca)
	if err != nil {
		return "", fmt.Errorf("the kubeconfig has no CA to pass on to joining machines: %w", err)
	}
	u, err := url.Parse(target.Client.Host)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the kubeconfig's server %q is not a URL", target.Client.Host)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip.IsLoopback() {
		c.Warn("other machines can't reach %s: name the server as they do, by --server https://ADDRESS:PORT (`kctl up` "+
			"listens there with --address)", u.Host)
	}
	return fmt.Sprintf("kctl join %s --token %s --discovery-token-ca-cert-hash %s", u.Host, token, strings.Join(hashes, ",")), nil
}

func newTokenList(c *frame.CLI) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens", Args: frame.NoArgs,
		Long: "List the tokens in full: anyone who sees the list can join machines. `-o json` omits\nthe secret half.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%s: only json is supported", output)
			}
			secrets, err := bootstrapTokens(cmd.Context(), c)
			if err != nil {
				return err
			}
			var tokens []*bootstrap.Token
			for i := range secrets {
				token, err := bootstrap.TokenOf(&secrets[i])
				if err != nil {
					c.Warn("%v", err)
					continue
				}
				tokens = append(tokens, token)
			}
			if output == "json" {
				return printJSON(c.Out, tokens)
			}
			return printTokens(c, tokens)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json (default: a table)")
	return cmd
}

// bootstrapTokens are the secrets that hold tokens.
func bootstrapTokens(ctx context.Context, c *frame.CLI) ([]core.Secret, error) {
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	var list corev1.SecretList
	err = client.Resource(core.Secrets, core.NamespaceSystem).List(ctx, &list,
		rest.FieldSelector("type="+string(corev1.SecretTypeBootstrapToken)))
	return list.Items, err
}

func printTokens(c *frame.CLI, tokens []*bootstrap.Token) error {
	w := tabwriter.NewWriter(printer.VisibleTo(c.Out), 0, 8, 3, ' ', 0)
	if len(tokens) > 0 {
		fmt.Fprintln(w, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	}
	orNone := func(text string) string { return cmp.Or(text, "<none>") }
	for _, t := range tokens {
		ttl, expires := "<forever>", "<never>"
		if !t.Expires.IsZero() {
			expires, ttl = t.Expires.UTC().Format(time.RFC3339), "<expired>"
			if left := t.Expires.Sub(c.Clock.Now()); left > 0 {
				ttl = duration.ShortHumanDuration(left)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			t, ttl, expires, orNone(strings.Join(t.Usages, ",")), orNone(t.Description), orNone(strings.Join(t.Groups, ",")))
	}
	return w.Flush()
}

func newTokenDelete(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "delete TOKEN|ID...", Short: "Delete tokens, so that no machine can join with them any more", Args: cobra.MinimumNArgs(1),
		Long:    "Delete tokens, so that no machine can join with them any more. Machines that have joined stay.",
		Example: "  kctl token delete abcdef",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Server()
			if err != nil {
				return err
			}
			for _, arg := range args {
				id, err := bootstrap.TokenID(arg)
				if err != nil {
					return err
				}
				if err := client.Resource(core.Secrets, core.NamespaceSystem).Delete(cmd.Context(), bootstrap.SecretName(id), nil, nil); err != nil {
					return err
				}
				fmt.Fprintf(c.Out, "bootstrap token %q deleted\n", id)
			}
			return nil
		},
	}
}
