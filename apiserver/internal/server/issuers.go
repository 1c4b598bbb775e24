package server

import (
	"errors"
	"fmt"
	"os"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authn/configuration"
	"kctl/apiserver/internal/authn/oidc"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/configfile"
)

// outsideIssuers is who knows the tokens of issuers outside the cluster, nil
// where there are none, and says who is let in without any credential: as the
// flags have it, or a file.
func (s *Server) outsideIssuers(anonymous *authn.Anonymous) (authn.TokenAuthenticator, error) {
	o := s.options
	anonymous.Put(s.anonymousByFlag())
	if o.AuthenticationConfig != "" {
		return s.authenticationFile(anonymous)
	}
	i := o.OIDC
	if i.IssuerURL == "" {
		return nil, nil
	}
	var authorities []byte
	if i.CAFile != "" {
		var err error
		if authorities, err = os.ReadFile(i.CAFile); err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
	}
	return oidc.New(oidc.Options{
		IssuerURL: i.IssuerURL, Clients: []string{i.ClientID}, Authorities: authorities,
		UsernameClaim: i.UsernameClaim, UsernamePrefix: i.UsernamePrefix,
		GroupsClaim: i.GroupsClaim, GroupsPrefix: i.GroupsPrefix, RequiredClaims: i.RequiredClaims,
		SigningAlgorithms: i.SigningAlgorithms, Audiences: o.APIAudiences, Clock: s.clock,
	})
}

// authenticationFile is what --authentication-config says, now and when the file
// has changed.
func (s *Server) authenticationFile(anonymous *authn.Anonymous) (authn.TokenAuthenticator, error) {
	path := s.options.AuthenticationConfig
	content, err := configfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--authentication-config: %w", err)
	}
	issuers := &authn.ExchangeableTokens{}
	apply := func(content []byte) error {
		kinds, rule, err := s.issuersOf(content)
		if err != nil {
			return fmt.Errorf("--authentication-config=%s: %w", path, err)
		}
		issuers.Put(kinds)
		anonymous.Put(rule)
		return nil
	}
	if err := apply(content); err != nil {
		return nil, err
	}
	s.files = append(s.files, &configfile.Follower{
		Path: path, Content: content, Apply: apply, Clock: s.clock, Logger: s.logger, Metrics: configfile.NewMetrics("authentication", s.metrics),
	})
	return issuers, nil
}

var errAnonymousTwice = errors.New("anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file")

// issuersOf builds what the content of a file says.
func (s *Server) issuersOf(content []byte) (authn.Tokens, authn.AnonymousRule, error) {
	o := s.options
	rule := s.anonymousByFlag()
	configured, err := configuration.Parse(content, o.ServiceAccountIssuers)
	if err != nil {
		return nil, rule, err
	}
	if a := configured.Anonymous; a != nil {
		if o.Given("anonymous-auth") {
			return nil, rule, errAnonymousTwice
		}
		rule = anonymousRule(a)
	}
	var kinds authn.Tokens
	for _, i := range configured.Issuers {
		issuer, err := oidc.New(oidc.Options{
			IssuerURL: i.URL, DiscoveryURL: ptr.Deref(i.DiscoveryURL, ""), Clients: i.Audiences, Authorities: []byte(i.CertificateAuthority),
			UserOf: i.Mapping.User, SigningAlgorithms: config.OIDCAlgorithms(), Audiences: o.APIAudiences, Clock: s.clock,
		})
		if err != nil {
			return nil, rule, err
		}
		kinds = append(kinds, issuer)
	}
	return kinds, rule, nil
}

// healthPaths answer one word to whoever asks, unless somebody says otherwise: a
// probe, a balancer or a test environment has no credential to show.
var healthPaths = []string{"/healthz", "/livez", "/readyz"}

// anonymousByFlag is who is let in without a credential where no file says it.
func (s *Server) anonymousByFlag() authn.AnonymousRule {
	if !s.options.Given("anonymous-auth") && !s.options.AnonymousAuth {
		return authn.AnonymousRule{Enabled: true, Paths: healthPaths}
	}
	return authn.AnonymousRule{Enabled: s.options.AnonymousAuth}
}

func anonymousRule(a *apiserverv1.AnonymousAuthConfig) authn.AnonymousRule {
	rule := authn.AnonymousRule{Enabled: a.Enabled}
	for _, condition := range a.Conditions {
		rule.Paths = append(rule.Paths, condition.Path)
	}
	return rule
}
