package server

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/node"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/config"
)

// authorization builds the union of the modes, behind system:masters. Until
// ready is closed the stored rules are not known, and whom they would allow is
// told to come back.
func authorization(modes []string, rules *rbac.Authorizer, pods node.Pods, ready <-chan struct{}) (authz.Union, error) {
	union := authz.Union{authz.Masters{}}
	for _, mode := range modes {
		switch mode {
		case config.ModeAlwaysAllow:
			union = append(union, authz.Always(authz.Allow))
		case config.ModeAlwaysDeny:
			union = append(union, authz.Always(authz.Deny))
		case config.ModeNode:
			union = append(union, &node.Authorizer{Pods: pods})
		case config.ModeRBAC:
			union = append(union, rules)
		default:
			return nil, fmt.Errorf("authorization mode %s: unknown", mode)
		}
	}
	return append(union, starting{ready}), nil
}

// starting stands last: nobody allowed the request, which means nothing yet
// while the rules are still being read.
type starting struct{ ready <-chan struct{} }

// Authorize implements authz.Authorizer.
func (s starting) Authorize(context.Context, *authz.Attributes) (authz.Decision, string, error) {
	select {
	case <-s.ready:
		return authz.NoOpinion, "", nil
	default:
		return authz.NoOpinion, "", errStarting
	}
}

var errStarting = func() error {
	err := apierrors.NewServiceUnavailable("the server is starting: roles and bindings are still being read")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}()
