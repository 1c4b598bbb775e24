package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
)

func newAuth(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("auth", "Inspect authorization")
	cmd.AddCommand(newCanI(c), newWhoami(c), newReconcile(c))
	return cmd
}

// canIOptions has the flags of `kctl auth can-i`.
type canIOptions struct {
	*frame.CLI
	quiet, allNamespaces, list, noHeaders bool
	subresource                           string
}

func newCanI(c *frame.CLI) *cobra.Command {
	a := &canIOptions{CLI: c}
	cmd := &cobra.Command{
		Use:     "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
		Short:   "Check whether an action is allowed",
		Example: "  kctl auth can-i create pods\n  kctl auth can-i get /metrics",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd, args) },
	}
	cmd.Flags().BoolVarP(&a.quiet, "quiet", "q", false, "If true, suppress output and just return the exit code.")
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "If true, check the specified action in all namespaces.")
	cmd.Flags().StringVar(&a.subresource, "subresource", "", "SubResource such as pod/log or deployment/scale")
	cmd.Flags().BoolVar(&a.list, "list", false, "If true, prints all allowed actions.")
	cmd.Flags().BoolVar(&a.noHeaders, "no-headers", false, "If true, prints allowed actions without headers")
	return cmd
}

func (a *canIOptions) run(cmd *cobra.Command, args []string) error {
	if a.list {
		if err := a.checkList(args); err != nil {
			return err
		}
		return a.listRules(cmd.Context(), a.noHeaders)
	}
	if len(args) != 2 {
		return fmt.Errorf("you must specify two arguments: verb resource or verb resource/resourceName.\n"+
			"See '%s auth can-i -h' for help and examples.", a.Name)
	}
	spec, err := a.reviewSpec(cmd.Context(), args[0], args[1])
	if err != nil {
		return err
	}
	client, err := a.Server()
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: spec}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	answer := &authorizationv1.SelfSubjectAccessReview{}
	if err := client.Do(cmd.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, answer); err != nil {
		return err
	}
	if !a.quiet {
		fmt.Fprintln(a.Out, verdict(answer.Status))
	}
	if !answer.Status.Allowed {
		return frame.ExitCode(frame.ExitError)
	}
	return nil
}

// checkList refuses what asks about one action where all are listed.
func (a *canIOptions) checkList(args []string) error {
	switch {
	case len(args) > 0:
		return errors.New("list option must be specified with no arguments")
	case a.quiet || a.allNamespaces || a.subresource != "":
		return errors.New("list option can't be specified with neither quiet, all-namespaces nor subresource options")
	}
	return nil
}

func verdict(status authorizationv1.SubjectAccessReviewStatus) string {
	word := "no"
	if status.Allowed {
		return "yes"
	}
	if status.Reason != "" {
		word += " - " + status.Reason
	}
	if status.EvaluationError != "" {
		word += " - " + status.EvaluationError
	}
	return word
}

// What servers of Kubernetes know. They answer no to any other verb, which may be a typing
// error.
var (
	resourceVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate",
		"impersonate", "approve", "sign", "attest", "*"}
	pathVerbs = []string{"get", "put", "post", "head", "options", "delete", "patch", "*"}
	// impersonated are resources of which there are rules, but no objects.
	impersonated = []string{"users", "groups"}
)

func (a *canIOptions) warnOfVerb(verb string, known []string) {
	if !slices.Contains(known, verb) {
		a.Warn("verb '%s' is not a known verb\n", verb) // these warnings have a line of their own below, as kubectl's
	}
}

func (a *canIOptions) reviewSpec(ctx context.Context, verb, what string) (authorizationv1.SelfSubjectAccessReviewSpec, error) {
	spec := authorizationv1.SelfSubjectAccessReviewSpec{}
	if strings.HasPrefix(what, "/") {
		if a.subresource != "" {
			return spec, errors.New("--subresource can not be used with NonResourceURL")
		}
		a.warnOfVerb(verb, pathVerbs)
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: verb, Path: what}
		return spec, nil
	}
	kind, name, _ := strings.Cut(what, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: verb, Resource: kind, Name: name, Subresource: a.subresource}
	spec.ResourceAttributes = attributes
	discovery, err := a.Discovery()
	if err != nil {
		return spec, err
	}
	namespaced := true
	if kind != "*" {
		resource, err := discovery.Named(ctx, kind)
		var unknown *discover.NoResourceError
		switch {
		case errors.As(err, &unknown) && slices.Contains(impersonated, kind):
		case errors.As(err, &unknown):
			text := fmt.Sprintf("the server doesn't have a resource type '%s'", unknown.Name)
			if unknown.Group != "" {
				text += fmt.Sprintf(" in group '%s'", unknown.Group)
			}
			a.Warn("%s\n", text)
		case err != nil:
			return spec, err
		default:
			attributes.Group, attributes.Resource, namespaced = resource.Group, resource.Name, resource.Namespaced
			if !namespaced && !a.allNamespaces {
				text := fmt.Sprintf("resource '%s' is not namespace scoped", resource.Name)
				if resource.Group != "" {
					text += fmt.Sprintf(" in group '%s'", resource.Group)
				}
				a.Warn("%s\n", text)
			}
		}
	}
	a.warnOfVerb(verb, resourceVerbs)
	if namespaced && !a.allNamespaces {
		if attributes.Namespace, err = a.Namespace(); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

func newWhoami(c *frame.CLI) *cobra.Command {
	var o frame.Printing
	cmd := &cobra.Command{
		Use: "whoami", Short: "Check self subject attributes", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Server()
			if err != nil {
				return err
			}
			review := &authenticationv1.SelfSubjectReview{}
			review.APIVersion, review.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
			answer := &authenticationv1.SelfSubjectReview{}
			if err := client.Do(cmd.Context(), http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, answer); err != nil {
				return err
			}
			if o.Chosen() {
				return c.Print(&o, "", answer)
			}
			return printUser(c, answer.Status.UserInfo)
		},
	}
	o.Add(cmd.Flags())
	return cmd
}

func printUser(c *frame.CLI, user authenticationv1.UserInfo) error {
	out := &printer.Columns{}
	out.Add("ATTRIBUTE", "VALUE")
	out.Add("Username", user.Username)
	if user.UID != "" {
		out.Add("UID", user.UID)
	}
	if len(user.Groups) > 0 {
		out.Add("Groups", fmt.Sprint(user.Groups))
	}
	for _, key := range slices.Sorted(maps.Keys(user.Extra)) {
		out.Add("Extra: "+key, fmt.Sprint([]string(user.Extra[key])))
	}
	return out.Flush(c.Out)
}
