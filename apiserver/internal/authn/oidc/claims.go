package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
)

type claims map[string]json.RawMessage

func (c claims) stringValue(name string) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", fmt.Errorf("claim %q is missing", name)
	}
	var value *string
	if err := json.Unmarshal(raw, &value); err != nil || value == nil {
		return "", fmt.Errorf("claim %q is not a string", name)
	}
	return *value, nil
}

// time returns a claim in seconds since 1970; ok is false if it is missing or
// invalid.
func (c claims) time(name string) (at time.Time, ok bool) {
	var seconds json.Number // a number, or a text that is one
	if json.Unmarshal(c[name], &seconds) != nil {
		return time.Time{}, false
	}
	value, err := seconds.Float64()
	return time.Unix(int64(value), 0), err == nil
}

// userOf reads the user from a verified token.
func (o *Options) userOf(_ context.Context, raw map[string]json.RawMessage) (*request.User, error) {
	c := claims(raw)
	for name, want := range o.RequiredClaims {
		value, err := c.stringValue(name)
		if err != nil {
			return nil, err
		}
		if value != want {
			return nil, fmt.Errorf("required claim %q has a different value", name)
		}
	}
	name, err := c.stringValue(o.UsernameClaim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("claim %q, the user's name, is empty", o.UsernameClaim)
	}
	if err := o.checkEmail(c); err != nil {
		return nil, err
	}
	groups, err := o.groupsOf(c)
	if err != nil {
		return nil, err
	}
	user := &request.User{Username: o.UsernamePrefix + name, Groups: groups}
	if id, err := c.stringValue(authn.ClaimID); err == nil {
		authn.AddCredentialID(user, id)
	}
	return user, nil
}

// checkEmail refuses addresses that the issuer marks as unverified.
func (o *Options) checkEmail(c claims) error {
	raw, ok := c[authn.ClaimEmailVerified]
	if o.UsernameClaim != authn.ClaimEmail || !ok {
		return nil
	}
	var verified bool
	if err := json.Unmarshal(raw, &verified); err != nil {
		return fmt.Errorf("claim %q is not true or false", authn.ClaimEmailVerified)
	}
	if !verified {
		return errors.New("the email address has not been verified")
	}
	return nil
}

// groupsOf reads one group or several.
func (o *Options) groupsOf(c claims) ([]string, error) {
	if o.GroupsClaim == "" {
		return nil, nil
	}
	raw, ok := c[o.GroupsClaim]
	if !ok {
		var elsewhere map[string]json.RawMessage
		if err := json.Unmarshal(c[authn.ClaimNames], &elsewhere); err == nil && elsewhere[o.GroupsClaim] != nil {
			return nil, fmt.Errorf("claim %q is a distributed claim, which is not supported", o.GroupsClaim)
		}
		return nil, nil
	}
	var groups []string
	if err := json.Unmarshal(raw, &groups); err != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return nil, fmt.Errorf("claim %q is neither a string nor a list of strings", o.GroupsClaim)
		}
		groups = []string{one}
	}
	for i := range groups {
		groups[i] = o.GroupsPrefix + groups[i]
	}
	return groups, nil
}
