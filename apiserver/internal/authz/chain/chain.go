package chain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/abac"
	"kctl/apiserver/internal/authz/configuration"
	"kctl/apiserver/internal/authz/node"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/authz/webhook"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Options are what the authorizers are built from.
type Options struct {
	Flags *config.Options
	// Rules are those of the mode RBAC.
	Rules *rbac.Authorizer
	// Pods is what the mode Node decides by; PodsChanged is the revision that Pods
	// must have reached to include everything kubelets may have been told.
	Pods        *informer.Informer[informer.Pod]
	PodsChanged func() int64
	// Stored reads an object as it is stored now, for the mode Node.
	Stored func(ctx context.Context, r core.Resource, namespace, name string) (core.Object, error)
	// Ready is closed when the stored rules are known. Until then, users whom they
	// may allow are told to retry.
	Ready   <-chan struct{}
	Metrics *prometheus.Registry
	Clock   clock.WithTicker
	Logger  *zap.Logger

	decisions *prometheus.CounterVec
	webhooks  *webhook.Metrics
}

// New returns the union of the modes, or of what a file says, after
// system:masters, and the files to be watched.
func New(o Options) (authz.Union, []*configfile.Follower, error) {
	o.decisions, o.webhooks = newDecisions(o.Metrics), webhook.NewMetrics(o.Metrics)
	union := authz.Union{authz.Masters{}}
	if o.Flags.AuthorizationConfig != "" {
		decides, file, err := o.file()
		if err != nil {
			return nil, nil, err
		}
		return append(union, decides, authz.Starting{Ready: o.Ready}), []*configfile.Follower{file}, nil
	}
	modes, err := o.modes()
	if err != nil {
		return nil, nil, err
	}
	return append(append(union, modes...), authz.Starting{Ready: o.Ready}), nil, nil
}

// modes are the authorizers of --authorization-mode.
func (o Options) modes() (authz.Union, error) {
	var union authz.Union
	for _, mode := range o.Flags.AuthorizationModes {
		authorizer, err := o.authorizerOf(mode)
		if mode == config.ModeWebhook {
			w := o.Flags.AuthorizationWebhook
			authorizer, err = o.askingAuthorizer(w.ConfigFile, webhook.Options{
				Name: "default", Version: w.Version, AllowedTTL: w.TTL, RefusedTTL: w.RefusedTTL,
			})
			if err != nil {
				err = fmt.Errorf("--authorization-webhook-config-file: %w", err)
			}
		}
		if err != nil {
			return nil, err
		}
		union = append(union, o.counted(mode, strings.ToLower(mode), authorizer))
	}
	return union, nil
}

// catchUpTime is how long a refusal waits for Pods to be up to date; only on a
// very busy machine does that take any time.
const catchUpTime = time.Second

// knowPods waits until o.Pods has everything that the server may have told kubelets.
func (o Options) knowPods(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	o.Pods.WaitForRevision(ctx, o.PodsChanged())
}

// authorizerOf makes the authorizer of a mode other than Webhook.
func (o Options) authorizerOf(mode string) (authz.Authorizer, error) {
	switch mode {
	case config.ModeAlwaysAllow:
		return authz.Always(authz.Allow), nil
	case config.ModeAlwaysDeny:
		return authz.Always(authz.Deny), nil
	case config.ModeABAC:
		return abac.Load(o.Flags.AuthorizationPolicyFile)
	case config.ModeNode:
		return &node.Authorizer{Pods: o.Pods, Stored: o.Stored, CatchUp: o.knowPods}, nil
	case config.ModeRBAC:
		return o.Rules, nil
	case config.ModeWebhook:
		return nil, nil
	}
	return nil, fmt.Errorf("authorization mode %s: unknown", mode)
}

// askingAuthorizer makes a webhook authorizer from its file.
func (o Options) askingAuthorizer(file string, asks webhook.Options) (authz.Authorizer, error) {
	service, err := webhookclient.Load(file, o.Clock, daemon.LogFileProblems(o.Logger))
	if err != nil {
		return nil, err
	}
	asks.Clock, asks.Metrics = o.Clock, o.webhooks
	return webhook.New(service, asks), nil
}

// file follows the file of --authorization-config.
func (o Options) file() (authz.Authorizer, *configfile.Follower, error) {
	path := o.Flags.AuthorizationConfig
	content, err := configfile.Read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("--authorization-config: %w", err)
	}
	decides := &authz.Exchangeable{}
	apply := func(content []byte) error {
		union, err := o.authorizersOf(content)
		if err != nil {
			return fmt.Errorf("--authorization-config=%s: %w", path, err)
		}
		decides.Put(union)
		return nil
	}
	if err := apply(content); err != nil {
		return nil, nil, err
	}
	return decides, &configfile.Follower{
		Path: path, Content: content, Apply: apply, Clock: o.Clock, Logger: o.Logger,
		Metrics: configfile.NewMetrics("authorization", content, o.Metrics),
	}, nil
}

// authorizersOf builds what a file's content describes.
func (o Options) authorizersOf(content []byte) (authz.Union, error) {
	configured, err := configuration.Parse(content, config.Modes())
	if err != nil {
		return nil, err
	}
	var union authz.Union
	for _, c := range configured {
		authorizer, err := o.authorizerOf(c.Type)
		if w := c.Webhook; w != nil {
			asks := webhook.Options{
				Name: c.Name, Version: w.SubjectAccessReviewVersion, AllowedTTL: w.AuthorizedTTL.Duration, RefusedTTL: w.UnauthorizedTTL.Duration,
				Timeout: w.Timeout.Duration, FailClosed: w.FailurePolicy == configuration.Deny,
			}
			if c.Conditions != nil {
				asks.Match = c.Conditions.Match
			}
			authorizer, err = o.askingAuthorizer(*w.ConnectionInfo.KubeConfigFile, asks)
		}
		if err != nil {
			return nil, fmt.Errorf("authorizer %s: %w", c.Name, err)
		}
		union = append(union, o.counted(c.Type, c.Name, authorizer))
	}
	return union, nil
}
