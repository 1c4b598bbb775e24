package send

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/doctor"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// aMoment is how long a controller gets to take up what is new, before the user is told
// that there is none: one that runs takes a tenth of it.
const aMoment = 300 * time.Millisecond

// askFor is how long it may take to find out.
const askFor = 5 * time.Second

// WarnUncontrolled tells the user, once in a command, that what was made will make no pods,
// because the cluster has no controller for it. Of upstream's servers nobody expects that:
// nothing is asked for there but one lease.
func (s *Sender) WarnUncontrolled(ctx context.Context, client *rest.Client, resource core.Resource, made *unstructured.Unstructured) {
	if s.DryRun != frame.DryRunNone || s.controllersAsked || !doctor.NeedsController(made) {
		return
	}
	s.controllersAsked = true
	ctx, cancel := context.WithTimeout(ctx, askFor) // it is made: a server that has become slow does not keep the user from knowing
	defer cancel()
	if !lacksControllers(ctx, client) {
		return
	}
	if backoff.Sleep(ctx, s.Clock, aMoment) != nil {
		return
	}
	now := &unstructured.Unstructured{}
	if err := client.Resource(resource, made.GetNamespace()).Get(ctx, made.GetName(), now); err == nil && doctor.NeedsController(now) {
		s.Warn("%s", doctor.UncontrolledText(now))
	}
}

// lacksControllers tells whether a server of ours has seen no sign of a kube-controller-manager:
// the lease by which one is elected, or an account with which its controllers act.
func lacksControllers(ctx context.Context, client *rest.Client) bool {
	absent := func(resource core.Resource, name string) bool {
		err := client.Resource(resource, core.NamespaceSystem).Get(ctx, name, &unstructured.Unstructured{})
		return apierrors.IsNotFound(err)
	}
	if !absent(core.Leases, "kube-controller-manager") {
		return false
	}
	version, err := frame.VersionOf(ctx, client)
	return err == nil && strings.Contains(version.GitVersion, "+kctl-") && absent(core.ServiceAccounts, "deployment-controller")
}
