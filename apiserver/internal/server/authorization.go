package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/abac"
	"kctl/apiserver/internal/authz/configuration"
	"kctl/apiserver/internal/authz/node"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/authz/webhook"
	"kctl/apiserver/internal/callout"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/housekeeping"
)

// authorization builds the union of the modes, or of what a file says, behind
// system:masters. Until ready is closed the stored rules are not known, and whom
// they would allow is told to come back.
func (s *Server) authorization(rules *rbac.Authorizer) (authz.Union, error) {
	union := authz.Union{authz.Masters{}}
	if s.options.AuthorizationConfig != "" {
		decides, err := s.authorizationFile(rules)
		if err != nil {
			return nil, err
		}
		return append(union, decides, authz.Starting{Ready: s.ready}), nil
	}
	modes, err := s.authorizationModes(rules)
	if err != nil {
		return nil, err
	}
	return append(append(union, modes...), authz.Starting{Ready: s.ready}), nil
}

// authorizationModes is what --authorization-mode says.
func (s *Server) authorizationModes(rules *rbac.Authorizer) (authz.Union, error) {
	var union authz.Union
	for _, mode := range s.options.AuthorizationModes {
		authorizer, err := s.authorizerOf(mode, rules)
		if mode == config.ModeWebhook {
			w := s.options.AuthorizationWebhook
			authorizer, err = s.askingAuthorizer(w.ConfigFile, webhook.Options{Version: w.Version, AllowedTTL: w.TTL, RefusedTTL: w.RefusedTTL})
			if err != nil {
				err = fmt.Errorf("--authorization-webhook-config-file: %w", err)
			}
		}
		if err != nil {
			return nil, err
		}
		union = append(union, authz.Named{Name: strings.ToLower(mode), Authorizer: authorizer})
	}
	return union, nil
}

// catchUpTime is how long a refusal waits for what is known of pods to be up to
// date; it takes no time but on a machine that is very busy.
const catchUpTime = time.Second

// knowPods waits until s.pods has what the server may have told kubelets.
func (s *Server) knowPods(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	s.pods.Reach(ctx, s.resources.Pods.Changed())
}

// authorizerOf makes the authorizer of a mode that asks nobody.
func (s *Server) authorizerOf(mode string, rules *rbac.Authorizer) (authz.Authorizer, error) {
	switch mode {
	case config.ModeAlwaysAllow:
		return authz.Always(authz.Allow), nil
	case config.ModeAlwaysDeny:
		return authz.Always(authz.Deny), nil
	case config.ModeABAC:
		return abac.Load(s.options.AuthorizationPolicyFile)
	case config.ModeNode:
		return &node.Authorizer{Pods: s.pods, Stored: s.storedNow, CatchUp: s.knowPods}, nil
	case config.ModeRBAC:
		return rules, nil
	case config.ModeWebhook:
		return nil, nil
	}
	return nil, fmt.Errorf("authorization mode %s: unknown", mode)
}

// askingAuthorizer makes one that asks the service that a file names.
func (s *Server) askingAuthorizer(file string, o webhook.Options) (authz.Authorizer, error) {
	service, err := callout.Load(file, s.clock)
	if err != nil {
		return nil, err
	}
	o.Clock = s.clock
	return webhook.New(service, o), nil
}

// authorizationFile is what --authorization-config says, now and when the file
// has changed.
func (s *Server) authorizationFile(rules *rbac.Authorizer) (authz.Authorizer, error) {
	path := s.options.AuthorizationConfig
	content, err := configfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--authorization-config: %w", err)
	}
	decides := &authz.Exchangeable{}
	apply := func(content []byte) error {
		union, err := s.authorizersOf(content, rules)
		if err != nil {
			return fmt.Errorf("--authorization-config=%s: %w", path, err)
		}
		decides.Put(union)
		return nil
	}
	if err := apply(content); err != nil {
		return nil, err
	}
	s.files = append(s.files, &configfile.Follower{
		Path: path, Content: content, Apply: apply, Clock: s.clock, Logger: s.logger, Metrics: configfile.NewMetrics("authorization", s.metrics),
	})
	return decides, nil
}

// authorizersOf builds what the content of a file says.
func (s *Server) authorizersOf(content []byte, rules *rbac.Authorizer) (authz.Union, error) {
	configured, err := configuration.Parse(content, config.Modes())
	if err != nil {
		return nil, err
	}
	var union authz.Union
	for _, c := range configured {
		authorizer, err := s.authorizerOf(c.Type, rules)
		if w := c.Webhook; w != nil {
			o := webhook.Options{
				Version: w.SubjectAccessReviewVersion, AllowedTTL: w.AuthorizedTTL.Duration, RefusedTTL: w.UnauthorizedTTL.Duration,
				Timeout: w.Timeout.Duration, FailClosed: w.FailurePolicy == configuration.Deny,
			}
			if c.Conditions != nil {
				o.Match = c.Conditions.Match
			}
			authorizer, err = s.askingAuthorizer(*w.ConnectionInfo.KubeConfigFile, o)
		}
		if err != nil {
			return nil, fmt.Errorf("authorizer %s: %w", c.Name, err)
		}
		union = append(union, authz.Named{Name: c.Name, Authorizer: authorizer})
	}
	return union, nil
}

// followFiles are the loops that follow configuration files.
func (s *Server) followFiles() []housekeeping.Loop {
	loops := make([]housekeeping.Loop, len(s.files))
	for i, f := range s.files {
		loops[i] = f.Run
	}
	return loops
}
