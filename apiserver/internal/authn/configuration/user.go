package configuration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	authenticationv1 "k8s.io/api/authentication/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/request"
)

const (
	claimsVar = "claims"
	userVar   = "user"
)

// claimsEnvironment is what expressions about claims see.
var claimsEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	set, err := celexpression.Environment(nil, cel.Variable(claimsVar, cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, err
	}
	return set.Env(celexpression.Stored)
})

// userEnvironment is what expressions about the user see.
var userEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	texts := apiservercel.NewListType(apiservercel.StringType, -1)
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range map[string]*apiservercel.DeclType{
		"username": apiservercel.StringType, "uid": apiservercel.StringType, "groups": texts,
		"extra": apiservercel.NewMapType(apiservercel.StringType, texts, -1),
	} {
		fields[name] = apiservercel.NewDeclField(name, t, false, nil, nil)
	}
	user := apiservercel.NewObjectType("kubernetes.UserInfo", fields)
	set, err := celexpression.Environment([]*apiservercel.DeclType{user}, cel.Variable(userVar, user.CelType()))
	if err != nil {
		return nil, err
	}
	return set.Env(celexpression.Stored)
})

// evaluation evaluates one token's expressions.
type evaluation struct {
	ctx    context.Context
	claims map[string]any
	budget *celexpression.Budget
}

// User returns the bearer of a token with these verified claims, or why the
// token is not accepted.
func (m *Mapping) User(ctx context.Context, raw map[string]json.RawMessage) (*request.User, error) {
	e := &evaluation{ctx: ctx, claims: make(map[string]any, len(raw)), budget: celexpression.NewBudget(celconfig.RuntimeCELCostBudget)}
	for name, value := range raw {
		var decoded any
		if err := json.Unmarshal(value, &decoded); err != nil {
			return nil, fmt.Errorf("claim %q: %w", name, err)
		}
		e.claims[name] = decoded
	}
	for i := range m.claimRules {
		if err := e.checkRule(&m.claimRules[i], claimsVar, e.claims); err != nil {
			return nil, err
		}
	}
	user, err := m.readUser(e)
	if err != nil {
		return nil, err
	}
	id, _ := e.claims[authn.ClaimID].(string)
	authn.AddCredentialID(user, id) // which the rules see, too
	seen := map[string]any{"username": user.Username, "uid": user.UID, "groups": user.Groups, "extra": extraOf(user)}
	for i := range m.userRules {
		if err := e.checkRule(&m.userRules[i], userVar, seen); err != nil {
			return nil, err
		}
	}
	return user, nil
}

func extraOf(user *request.User) map[string]any {
	out := make(map[string]any, len(user.Extra))
	for key, values := range user.Extra {
		out[key] = []string(values)
	}
	return out
}

// checkRule checks one rule.
func (e *evaluation) checkRule(r *rule, variable string, value any) error {
	if r.expression == nil {
		text, ok := e.claims[r.claim].(string)
		if !ok {
			return fmt.Errorf("required claim %q is missing or not a string", r.claim)
		}
		if text != r.value {
			return fmt.Errorf("required claim %q has a different value", r.claim)
		}
		return nil
	}
	result, err := r.expression.Evaluate(e.ctx, map[string]any{variable: value}, e.budget)
	switch {
	case err != nil:
		return fmt.Errorf("validation expression %q: %w", r.text, err)
	case result == types.True:
		return nil
	case r.message != "":
		return errors.New(r.message)
	}
	return fmt.Errorf("validation expression %q failed", r.text)
}

// readUser reads the user in the claims.
func (m *Mapping) readUser(e *evaluation) (*request.User, error) {
	username, err := e.text(&m.username)
	if err != nil {
		return nil, fmt.Errorf("username: %w", err)
	}
	if username == "" {
		return nil, errors.New("username: is empty")
	}
	if verified, there := e.claims[authn.ClaimEmailVerified]; there && m.username.claim == authn.ClaimEmail && verified != true {
		return nil, errors.New("the email address has not been verified")
	}
	user := &request.User{Username: m.username.prefix + username}
	if user.UID, err = e.text(&m.uid); err != nil {
		return nil, fmt.Errorf("uid: %w", err)
	}
	if user.Groups, err = e.texts(&m.groups); err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	for i := range user.Groups {
		user.Groups[i] = m.groups.prefix + user.Groups[i]
	}
	for _, x := range m.extra {
		values, err := e.texts(&source{expression: x.value})
		if err != nil {
			return nil, fmt.Errorf("extra %s: %w", x.key, err)
		}
		if len(values) == 0 {
			continue
		}
		if user.Extra == nil {
			user.Extra = map[string]authenticationv1.ExtraValue{}
		}
		user.Extra[x.key] = values
	}
	return user, nil
}

// value is the value of a source; nil if it has none, or its claim is missing.
func (e *evaluation) value(s *source) (any, error) {
	if s.expression == nil {
		value, there := e.claims[s.claim]
		if elsewhere, _ := e.claims[authn.ClaimNames].(map[string]any); !there && elsewhere[s.claim] != nil {
			return nil, fmt.Errorf("%s is a distributed claim, which is not supported", s)
		}
		return value, nil
	}
	result, err := s.expression.Evaluate(e.ctx, map[string]any{claimsVar: e.claims}, e.budget)
	if err != nil {
		return nil, err
	}
	switch result.Type() {
	case types.NullType:
		return nil, nil
	case types.ListType:
		return elements(result)
	}
	return result.Value(), nil
}

// elements are those of a list of any type.
func elements(list ref.Val) (any, error) {
	return list.ConvertToNative(reflect.TypeFor[[]any]())
}

// text reads one string, which must be there if the source is.
func (e *evaluation) text(s *source) (string, error) {
	value, err := e.value(s)
	if err != nil || s.claim == "" && s.expression == nil {
		return "", err
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%s is missing or not a string", s)
	}
	return text, nil
}

// texts reads one string or several; it skips empty ones.
func (e *evaluation) texts(s *source) ([]string, error) {
	value, err := e.value(s)
	if err != nil {
		return nil, err
	}
	var out []string
	switch v := value.(type) {
	case nil:
	case string:
		if v != "" {
			out = append(out, v)
		}
	case []any:
		for _, element := range v {
			if unwrapped, ok := element.(ref.Val); ok {
				element = unwrapped.Value()
			}
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("%s contains a value that is not a string", s)
			}
			if text != "" {
				out = append(out, text)
			}
		}
	default:
		return nil, fmt.Errorf("%s is neither a string nor a list of strings", s)
	}
	return out, nil
}

// String names the source in errors.
func (s *source) String() string {
	if s.claim != "" {
		return fmt.Sprintf("claim %q", s.claim)
	}
	return "the value of the expression"
}
