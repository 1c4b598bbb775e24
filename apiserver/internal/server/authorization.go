package server

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/abac"
	"kctl/apiserver/internal/authz/node"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/authz/webhook"
	"kctl/apiserver/internal/callout"
	"kctl/apiserver/internal/config"
)

// authorization builds the union of the modes, behind system:masters. Until
// ready is closed the stored rules are not known, and whom they would allow is
// told to come back.
func authorization(o *config.Options, rules *rbac.Authorizer, pods node.Pods, ready <-chan struct{}, clock clock.WithTicker) (authz.Union, error) {
	union := authz.Union{authz.Masters{}}
	for _, mode := range o.AuthorizationModes {
		switch mode {
		case config.ModeAlwaysAllow:
			union = append(union, authz.Always(authz.Allow))
		case config.ModeAlwaysDeny:
			union = append(union, authz.Always(authz.Deny))
		case config.ModeABAC:
			policies, err := abac.Load(o.AuthorizationPolicyFile)
			if err != nil {
				return nil, err
			}
			union = append(union, policies)
		case config.ModeWebhook:
			w := o.AuthorizationWebhook
			service, err := callout.Load(w.ConfigFile, clock)
			if err != nil {
				return nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
			}
			union = append(union, webhook.New(service, webhook.Options{Version: w.Version, AllowedTTL: w.TTL, RefusedTTL: w.RefusedTTL, Clock: clock}))
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
