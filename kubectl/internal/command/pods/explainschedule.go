package pods

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
)

// schedule is the scheduler's answer at /debug/explain.
type schedule struct {
	Pod        string         `json:"pod"`
	Node       string         `json:"node"`
	Nominated  string         `json:"nominatedNode"`
	Queue      string         `json:"queue"`
	RejectedBy []string       `json:"rejectedBy"`
	Message    string         `json:"message"`
	Nodes      []scheduleNode `json:"nodes"`
}

type scheduleNode struct {
	Name   string `json:"name"`
	Total  int64  `json:"total"`
	Scores []struct {
		Plugin string `json:"plugin"`
		Score  int64  `json:"score"`
		Weight int64  `json:"weight"`
	} `json:"scores"`
	Refusals []struct {
		Plugin  string   `json:"plugin"`
		Reasons []string `json:"reasons"`
	} `json:"refusals"`
	Lacks []struct {
		Resource string `json:"resource"`
		Asked    string `json:"asked"`
		Free     string `json:"free"`
		Of       string `json:"of"`
	} `json:"lacks"`
	Taints []string `json:"taints"`
}

// NewExplainSchedule is `kctl explain-schedule`; the help lists it among the verbs that
// read.
func NewExplainSchedule(c *frame.CLI) *cobra.Command {
	var scheduler, format string
	cmd := &cobra.Command{
		Use:   "explain-schedule pod/NAME",
		Short: "Show how the scheduler judges every node for a pod",
		Long: "Show how the scheduler judges every node for a pod: the plugins that reject the node, or the scores that rank it.\n\n" +
			"This asks the scheduler, not the API server: it must be kctl's scheduler, and it authenticates you by your certificate or token.",
		Example: "  kctl explain-schedule pod/web\n  kctl explain-schedule web --scheduler https://192.168.10.5:10259 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onePod(cmd, args)
			if err != nil {
				return err
			}
			if format != "" && format != "json" {
				return frame.UsageError(cmd, "--output must be json, not %q", format)
			}
			answer, err := askScheduler(cmd.Context(), c, scheduler, name)
			if err != nil {
				return err
			}
			if format == "json" {
				_, err = fmt.Fprintln(c.Out, strings.TrimSpace(string(answer)))
				return err
			}
			return printSchedule(c, answer)
		},
	}
	cmd.Flags().StringVar(&scheduler, "scheduler", "",
		"URL of the scheduler's port for health checks and metrics. (default: that of the cluster of kctl up whose kubeconfig is used, "+
			"else https://127.0.0.1:10259)")
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format. One of: (json).")
	return cmd
}

// defaultScheduler is upstream's port on this machine.
const defaultScheduler = "https://127.0.0.1:10259"

// askScheduler asks as the user that the API server would be asked as.
func askScheduler(ctx context.Context, c *frame.CLI, scheduler, pod string) (json.RawMessage, error) {
	target, err := c.Kubeconfig()
	if err != nil {
		return nil, err
	}
	if scheduler == "" {
		scheduler = defaultScheduler
		if local := cluster.Of(target.File); local != nil && local.Scheduler != "" {
			scheduler = local.Scheduler
		}
	}
	client, err := target.At(scheduler).Rest(c.WrapTransport)
	if err != nil {
		return nil, err
	}
	var answer json.RawMessage
	err = client.Do(ctx, http.MethodGet, "/debug/explain", nil, &answer, rest.Query("pod", target.Namespace+"/"+pod))
	if errors.Is(err, syscall.ECONNREFUSED) { // with an error of its own: it is not the API server that is unreachable
		return nil, fmt.Errorf(
			"no scheduler listens at %s: use --scheduler if it listens elsewhere (\"kctl status\" shows the address, "+
				"for a cluster on this machine)", scheduler)
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && apierrors.IsNotFound(err) && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "") {
		return nil, fmt.Errorf("the server at %s is not kctl's scheduler: set its URL with --scheduler", scheduler)
	}
	var untimely x509.CertificateInvalidError
	if errors.As(err, &untimely) && untimely.Reason == x509.Expired {
		switch {
		case c.Clock.Now().Before(untimely.Cert.NotBefore):
			return nil, fmt.Errorf("check this machine's clock: the certificate of the scheduler at %s is not valid yet: %w", scheduler, untimely)
		case untimely.Cert.IsCA:
			return nil, fmt.Errorf(
				"the CA that signed the certificate of the scheduler at %s has expired and must be replaced: see \"Replacing an "+
					"authority\" in docs/operations.md: %w", scheduler, untimely)
		}
		return nil, fmt.Errorf(
			"the certificate of the scheduler at %s is not valid now: \"kctl pki renew scheduler-server\" on its machine, and "+
				"\"systemctl restart kctl-scheduler\" where that unit has a copy, or \"kctl up\" for a cluster of it: %w", scheduler, untimely)
	}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return nil, fmt.Errorf("the server at %s is not this cluster's scheduler: set its URL with --scheduler: %w", scheduler, untrusted)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler at %s: %w", scheduler, err)
	}
	return answer, nil
}

func printSchedule(c *frame.CLI, answer json.RawMessage) error {
	var s schedule
	if err := json.Unmarshal(answer, &s); err != nil {
		return fmt.Errorf("the scheduler's answer: %w", err)
	}
	out := printer.VisibleTo(c.Out)
	switch {
	case s.Node != "":
		fmt.Fprintf(out, "pod %s is on node %s; to a pod like it, the nodes would answer:\n", s.Pod, s.Node)
	case s.Nominated != "":
		fmt.Fprintf(out, "pod %s waits for room on node %s\n", s.Pod, s.Nominated)
	default:
		fmt.Fprintf(out, "pod %s waits (%s)\n", s.Pod, s.Queue)
	}
	if len(s.RejectedBy) > 0 {
		fmt.Fprintf(out, "refused last by %s\n", strings.Join(s.RejectedBy, ", "))
	}
	if s.Message != "" {
		fmt.Fprintln(out, s.Message)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NODE\tSCORE\tWHY")
	for _, n := range s.Nodes {
		score, why := fmt.Sprint(n.Total), []string{}
		for _, r := range n.Refusals {
			score = "-"
			why = append(why, r.Plugin+": "+strings.Join(r.Reasons, ", "))
		}
		for _, taint := range n.Taints {
			why = append(why, "taint: "+taint)
		}
		for _, l := range n.Lacks {
			why = append(why, fmt.Sprintf("%s: %s asked, %s of %s free", l.Resource, l.Asked, l.Free, l.Of))
		}
		for _, p := range n.Scores {
			if p.Score > 0 {
				why = append(why, fmt.Sprintf("%s %d×%d", p.Plugin, p.Score, p.Weight))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", n.Name, score, strings.Join(why, "; "))
	}
	return w.Flush()
}
