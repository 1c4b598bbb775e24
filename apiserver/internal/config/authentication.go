package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Webhook is an external service that is asked for decisions.
type Webhook struct {
	ConfigFile string // a kubeconfig; without one, no service is asked
	Version    string
	// How long answers are cached; RefusedTTL is for authorization only.
	TTL, RefusedTTL time.Duration
}

// RequestHeader says which proxies may name users in headers, and in which headers.
type RequestHeader struct {
	ClientCAFile                                             string
	AllowedNames                                             []string
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraPrefixes []string
}

// usernameClaim is the default.
const usernameClaim = "sub"

// OIDC says whose ID tokens are accepted, and what is read from them.
type OIDC struct {
	IssuerURL, ClientID, CAFile   string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	RequiredClaims                map[string]string
	SigningAlgorithms             []string
}

const (
	defaultReviewVersion = "v1beta1" // upstream's, for services that are older than v1
	tokenReviewTTL       = 2 * time.Minute
	allowedTTL           = 5 * time.Minute
	refusedTTL           = 30 * time.Second
)

var (
	reviewVersions = []string{"v1", "v1beta1"}
	// oidcAlgorithms exclude signing with a shared secret, and "none".
	oidcAlgorithms = []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}
)

// addIdentities adds the flags for external sources of identity.
func (o *Options) addIdentities(fs *pflag.FlagSet) {
	fs.BoolVar(&o.BootstrapTokenAuth, "enable-bootstrap-token-auth", o.BootstrapTokenAuth,
		"accept bootstrap tokens, with which new nodes join: secrets of type bootstrap.kubernetes.io/token in kube-system")

	w := &o.TokenWebhook
	fs.StringVar(&w.ConfigFile, "authentication-token-webhook-config-file", w.ConfigFile,
		"kubeconfig of a webhook that validates bearer tokens")
	fs.StringVar(&w.Version, "authentication-token-webhook-version", w.Version,
		"API version of the TokenReview sent to the webhook: v1 or v1beta1")
	fs.DurationVar(&w.TTL, "authentication-token-webhook-cache-ttl", w.TTL, "how long the webhook's answers are cached")

	h := &o.RequestHeader
	fs.StringVar(&h.ClientCAFile, "requestheader-client-ca-file", h.ClientCAFile, "CA of proxies that may name the user in request headers")
	fs.StringSliceVar(&h.AllowedNames, "requestheader-allowed-names", h.AllowedNames,
		"common names allowed in these proxies' certificates (default: any signed by the CA)")
	fs.StringSliceVar(&h.UsernameHeaders, "requestheader-username-headers", h.UsernameHeaders,
		"headers with the user's name; X-Remote-User is common")
	fs.StringSliceVar(&h.UIDHeaders, "requestheader-uid-headers", h.UIDHeaders, "headers with the user's uid; X-Remote-Uid is common")
	fs.StringSliceVar(&h.GroupHeaders, "requestheader-group-headers", h.GroupHeaders,
		"headers with the user's groups; X-Remote-Group is common")
	fs.StringSliceVar(&h.ExtraPrefixes, "requestheader-extra-headers-prefix", h.ExtraPrefixes,
		"prefixes of headers with more about the user; X-Remote-Extra- is common")

	fs.StringVar(&o.AuthenticationConfig, "authentication-config", o.AuthenticationConfig,
		"file with an AuthenticationConfiguration (apiserver.config.k8s.io/v1): accepted token issuers, in place of --oidc-*, and anonymous "+
			"access, in place of --anonymous-auth; reloaded when it changes")
	i := &o.OIDC
	fs.StringVar(&i.IssuerURL, "oidc-issuer-url", i.IssuerURL, "URL (https) of the OpenID Connect issuer whose ID tokens are accepted")
	fs.StringVar(&i.ClientID, "oidc-client-id", i.ClientID, "client ID that ID tokens must be issued for")
	fs.StringVar(&i.CAFile, "oidc-ca-file", i.CAFile, "CA of the issuer's certificate (default: the host's CAs)")
	fs.StringVar(&i.UsernameClaim, "oidc-username-claim", i.UsernameClaim, "claim with the user's name")
	fs.StringVar(&i.UsernamePrefix, "oidc-username-prefix", i.UsernamePrefix,
		"prefix for user names, - for none (default: the issuer's URL and #, unless the claim is email)")
	fs.StringVar(&i.GroupsClaim, "oidc-groups-claim", i.GroupsClaim, "claim with the user's group or groups")
	fs.StringVar(&i.GroupsPrefix, "oidc-groups-prefix", i.GroupsPrefix, "prefix for group names")
	fs.StringToStringVar(&i.RequiredClaims, "oidc-required-claim", i.RequiredClaims, "claim=value that ID tokens must have")
	fs.StringSliceVar(&i.SigningAlgorithms, "oidc-signing-algs", i.SigningAlgorithms, "algorithms that ID tokens may be signed with")
}

// OIDCAlgorithms are those that ID tokens can be signed with.
func OIDCAlgorithms() []string { return slices.Clone(oidcAlgorithms) }

func (o *Options) validateIdentities() error {
	if o.AuthenticationConfig != "" {
		if err := o.only("authentication-config file and oidc-* flags are mutually exclusive",
			"oidc-issuer-url", "oidc-client-id", "oidc-ca-file", "oidc-username-claim", "oidc-username-prefix",
			"oidc-groups-claim", "oidc-groups-prefix", "oidc-required-claim", "oidc-signing-algs"); err != nil {
			return err
		}
	}
	return errors.Join(
		o.TokenWebhook.validate("--authentication-token-webhook"),
		o.RequestHeader.validate(),
		o.OIDC.validate(),
	)
}

func (w *Webhook) validate(flag string) error {
	if !slices.Contains(reviewVersions, w.Version) {
		return fmt.Errorf("%s-version=%s: unknown; known are %s", flag, w.Version, strings.Join(reviewVersions, ", "))
	}
	if w.TTL < 0 || w.RefusedTTL < 0 {
		return fmt.Errorf("%s-cache-...ttl: must not be negative", flag)
	}
	return nil
}

func (h *RequestHeader) validate() error {
	if h.ClientCAFile == "" {
		if len(h.AllowedNames)+len(h.UsernameHeaders)+len(h.UIDHeaders)+len(h.GroupHeaders)+len(h.ExtraPrefixes) > 0 {
			return errors.New("--requestheader-... flags: require --requestheader-client-ca-file")
		}
		return nil
	}
	if len(h.UsernameHeaders) == 0 {
		return errors.New("--requestheader-client-ca-file: requires --requestheader-username-headers")
	}
	for _, list := range [][]string{h.AllowedNames, h.UsernameHeaders, h.UIDHeaders, h.GroupHeaders, h.ExtraPrefixes} {
		for _, value := range list {
			if strings.TrimSpace(value) == "" {
				return errors.New("--requestheader-...: values must not be empty")
			}
		}
	}
	return nil
}

func (i *OIDC) validate() error {
	if i.IssuerURL == "" {
		if i.ClientID != "" || i.CAFile != "" || i.GroupsClaim != "" || i.GroupsPrefix != "" || i.UsernamePrefix != "" ||
			i.UsernameClaim != usernameClaim || len(i.RequiredClaims) > 0 {
			return errors.New("--oidc-... flags: require --oidc-issuer-url")
		}
		return nil
	}
	issuer, err := url.Parse(i.IssuerURL)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "" {
		return fmt.Errorf("--oidc-issuer-url=%s: not a URL of the form https://host/path", i.IssuerURL)
	}
	if i.ClientID == "" {
		return errors.New("--oidc-issuer-url: requires --oidc-client-id")
	}
	if i.UsernameClaim == "" {
		return errors.New("--oidc-username-claim: must not be empty")
	}
	if len(i.SigningAlgorithms) == 0 {
		return errors.New("--oidc-signing-algs: at least one is required")
	}
	return known("--oidc-signing-algs", i.SigningAlgorithms, oidcAlgorithms)
}
