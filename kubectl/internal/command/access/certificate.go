package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/proto/core"
)

func newCertificate(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("certificate", "Modify certificate resources")
	cmd.Args, cmd.RunE = nil, nil // alone it is a question, as in kubectl
	cmd.AddCommand(newDecide(c, "approve", "approved", "Approved", "Denied"), newDecide(c, "deny", "denied", "Denied", "Approved"))
	return cmd
}

// newDecide approves or denies requests for certificates.
func newDecide(c *frame.CLI, verb, past, condition, opposite string) *cobra.Command {
	s := &send.Sender{CLI: c}
	var selected lookup.Selection
	var force bool
	cmd := &cobra.Command{
		Use: verb + " (-f FILENAME | NAME)", Short: map[string]string{"approve": "Approve a certificate signing request",
			"deny": "Deny a certificate signing request"}[verb],
		Example: "  kctl certificate " + verb + " csr-sqgzp",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !selected.FromFiles() {
				return errors.New("one or more CSRs must be specified as <name> or -f <filename>")
			}
			targets, err := lookup.Targets(cmd.Context(), c, &selected, args, core.CertificateSigningRequests.Name)
			if err != nil {
				return err
			}
			return lookup.Each(cmd.Context(), c, targets, &selected, func(t lookup.Target, object *unstructured.Unstructured) error {
				changed, err := decide(cmd.Context(), s, t, object, decisionOptions{condition, opposite, verb, force})
				if err != nil {
					return err
				}
				return s.Print(&s.Printing, past, changed)
			})
		},
	}
	selected.AddFiles(cmd.Flags(), "identifying the resource to update")
	s.Printing.AddChecked(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "Update the CSR even if it is already "+past+".")
	return cmd
}

type decisionOptions struct {
	condition, opposite, verb string
	force                     bool
}

// decide adds the condition that says so; a decision that was taken before
// stays as it is.
func decide(ctx context.Context, s *send.Sender, t lookup.Target, object *unstructured.Unstructured,
	d decisionOptions) (*unstructured.Unstructured, error) {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", t.ObjectName, err)
	}
	is := func(kind string) func(any) bool {
		return func(each any) bool {
			condition, _ := each.(map[string]any)
			return condition["type"] == kind
		}
	}
	switch {
	case slices.ContainsFunc(conditions, is(d.opposite)):
		return nil, fmt.Errorf("certificate signing request %q is already %s", t.ObjectName, d.opposite)
	case !d.force && slices.ContainsFunc(conditions, is(d.condition)):
		return object, nil
	}
	conditions = slices.DeleteFunc(conditions, is(d.condition))
	now := s.Clock.Now().UTC().Format(time.RFC3339)
	conditions = append(conditions, map[string]any{
		"type": d.condition, "status": "True", "reason": "Kubectl" + d.condition[:len(d.condition)-1],
		"message": "This CSR was " + map[string]string{"approve": "approved", "deny": "denied"}[d.verb] + " by kctl certificate " +
			d.verb + ".",
		"lastUpdateTime": now,
	})
	if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
		return nil, fmt.Errorf("changing %s: %w", t.ObjectName, err)
	}
	client, err := s.Server()
	if err != nil {
		return nil, err
	}
	if d.verb == "approve" {
		if foreign := foreignNames(ctx, client, object); foreign != "" {
			s.Warn("%s asks for %s", t.ObjectName, foreign)
		}
	}
	body, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", t.ObjectName, err)
	}
	var answer []byte
	if err := client.Do(ctx, http.MethodPut, t.Path("", t.ObjectName)+"/approval", body, &answer); err != nil {
		return nil, err
	}
	return lookup.Decode(answer)
}
