package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Authorization modes.
const (
	ModeAlwaysAllow = "AlwaysAllow"
	ModeAlwaysDeny  = "AlwaysDeny"
	ModeABAC        = "ABAC"
	ModeWebhook     = "Webhook"
	ModeNode        = "Node"
	ModeRBAC        = "RBAC"
)

var modes = []string{ModeAlwaysAllow, ModeAlwaysDeny, ModeABAC, ModeWebhook, ModeNode, ModeRBAC}

func (o *Options) addAuthorization(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.AuthorizationModes, "authorization-mode", o.AuthorizationModes,
		"authorizers, in the order in which they are asked: "+strings.Join(modes, ", "))
	fs.StringVar(&o.AuthorizationPolicyFile, "authorization-policy-file", o.AuthorizationPolicyFile,
		"file with policies for --authorization-mode=ABAC, one JSON object per line")
	fs.StringVar(&o.AuthorizationConfig, "authorization-config", o.AuthorizationConfig,
		"file with an AuthorizationConfiguration (apiserver.config.k8s.io/v1), in place of --authorization-mode and "+
			"--authorization-webhook-*; reloaded when it changes")
	w := &o.AuthorizationWebhook
	fs.StringVar(&w.ConfigFile, "authorization-webhook-config-file", w.ConfigFile,
		"kubeconfig of the webhook for --authorization-mode=Webhook")
	fs.StringVar(&w.Version, "authorization-webhook-version", w.Version,
		"API version of the SubjectAccessReview sent to the webhook: v1 or v1beta1")
	fs.DurationVar(&w.TTL, "authorization-webhook-cache-authorized-ttl", w.TTL, "how long the webhook's positive answers are cached")
	fs.DurationVar(&w.RefusedTTL, "authorization-webhook-cache-unauthorized-ttl", w.RefusedTTL,
		"how long the webhook's negative answers are cached")
}

// Modes are the kinds of authorizers that there are.
func Modes() []string { return slices.Sorted(slices.Values(modes)) }

func (o *Options) validateAuthorization() error {
	if o.AuthorizationConfig != "" {
		return o.only("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
			"authorization-mode", "authorization-webhook-config-file", "authorization-webhook-version",
			"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl")
	}
	if len(o.AuthorizationModes) == 0 {
		return errors.New("--authorization-mode: at least one mode is required")
	}
	var errs []error
	for i, mode := range o.AuthorizationModes {
		switch {
		case !slices.Contains(modes, mode):
			errs = append(errs, fmt.Errorf("--authorization-mode=%s: unknown mode; known are %s", mode, strings.Join(modes, ", ")))
		case slices.Contains(o.AuthorizationModes[:i], mode):
			errs = append(errs, fmt.Errorf("--authorization-mode=%s: must not be repeated", mode))
		}
	}
	errs = append(errs,
		o.modeNeeds(ModeABAC, "--authorization-policy-file", o.AuthorizationPolicyFile),
		o.modeNeeds(ModeWebhook, "--authorization-webhook-config-file", o.AuthorizationWebhook.ConfigFile),
		o.AuthorizationWebhook.validate("--authorization-webhook"))
	return errors.Join(errs...)
}

// only returns an error if one of the flags is given.
func (o *Options) only(says string, flags ...string) error {
	if slices.ContainsFunc(flags, o.Given) {
		return errors.New(says)
	}
	return nil
}

// Given reports whether a flag is on the command line.
func (o *Options) Given(flag string) bool { return o.flags != nil && o.flags.Changed(flag) }

// modeNeeds checks that a mode and its file are given together.
func (o *Options) modeNeeds(mode, flag, file string) error {
	switch on := slices.Contains(o.AuthorizationModes, mode); {
	case on && file == "":
		return fmt.Errorf("--authorization-mode=%s: requires %s", mode, flag)
	case !on && file != "":
		return fmt.Errorf("%s: requires --authorization-mode=%s", flag, mode)
	}
	return nil
}
