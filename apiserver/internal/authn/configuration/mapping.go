package configuration

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/celexpression"
)

// Mapping determines the bearer of a token from its claims. It is safe for
// concurrent use.
type Mapping struct {
	username, groups, uid source
	extra                 []extra
	claimRules            []rule
	userRules             []rule
}

// source is where a part of the user comes from: a claim, or an expression.
type source struct {
	claim, prefix string
	expression    *celexpression.Program
}

type extra struct {
	key   string
	value *celexpression.Program
}

// rule is a claim that must have a value, or an expression that must be true.
type rule struct {
	claim, value string
	text         string
	expression   *celexpression.Program
	message      string
}

// compiler compiles the expressions of one issuer and collects errors.
type compiler struct {
	errs field.ErrorList
	// Which of the claims about an email address expressions use.
	email, verified bool
}

func newMapping(j *apiserverv1.JWTAuthenticator, at *field.Path) (*Mapping, field.ErrorList) {
	c, m := &compiler{}, &Mapping{}
	rules := at.Child("claimValidationRules")
	seenClaims, seenTexts := uniqueValues{}, uniqueValues{}
	for i := range j.ClaimValidationRules {
		m.claimRules = append(m.claimRules, c.claimRule(&j.ClaimValidationRules[i], seenClaims, seenTexts, rules.Index(i)))
	}
	c.mappings(m, &j.ClaimMappings, at.Child("claimMappings"))
	seenTexts = uniqueValues{}
	for i, r := range j.UserValidationRules {
		path := at.Child("userValidationRules").Index(i).Child("expression")
		if r.Expression == "" {
			c.errs = append(c.errs, field.Required(path, ""))
			continue
		}
		c.errs = append(c.errs, seenTexts.add(r.Expression, path)...)
		m.userRules = append(m.userRules, rule{
			text: r.Expression, message: r.Message, expression: c.compile(userEnvironment, r.Expression, path, cel.BoolType),
		})
	}
	return m, c.errs
}

func (c *compiler) claimRule(r *apiserverv1.ClaimValidationRule, claims, texts uniqueValues, at *field.Path) rule {
	out := rule{claim: r.Claim, value: r.RequiredValue, text: r.Expression, message: r.Message}
	switch {
	case r.Claim != "" && r.Expression != "":
		c.errs = append(c.errs, field.Invalid(at, r.Claim, "claim and expression can't both be set"))
	case r.Claim == "" && r.Expression == "":
		c.errs = append(c.errs, field.Required(at, "claim or expression is required"))
	case r.Claim != "":
		if r.Message != "" {
			c.errs = append(c.errs, field.Invalid(at.Child("message"), r.Message, "may not be specified when claim is set"))
		}
		c.errs = append(c.errs, claims.add(r.Claim, at.Child("claim"))...)
	default:
		if r.RequiredValue != "" {
			c.errs = append(c.errs, field.Invalid(at.Child("requiredValue"), r.RequiredValue, "may not be specified when expression is set"))
		}
		c.errs = append(c.errs, texts.add(r.Expression, at.Child("expression"))...)
		out.expression = c.compile(claimsEnvironment, r.Expression, at.Child("expression"), cel.BoolType)
	}
	return out
}

func (c *compiler) mappings(m *Mapping, from *apiserverv1.ClaimMappings, at *field.Path) {
	username := at.Child("username")
	if from.Username.Claim == "" && from.Username.Expression == "" {
		c.errs = append(c.errs, field.Required(username, "claim or expression is required"))
	}
	c.email = false // it counts if it names the user
	m.username = c.prefixedSource(&from.Username, username)
	namesUser, verified := c.email, c.verified
	m.groups = c.prefixedSource(&from.Groups, at.Child("groups"))
	m.uid = c.source(from.UID.Claim, from.UID.Expression, at.Child("uid"))
	c.verified = verified // those two don't prove it
	seen := uniqueValues{}
	for i, e := range from.Extra {
		path := at.Child("extra").Index(i)
		c.checkExtraKey(e.Key, path.Child("key"))
		c.errs = append(c.errs, seen.add(e.Key, path.Child("key"))...)
		if e.ValueExpression == "" {
			c.errs = append(c.errs, field.Required(path.Child("valueExpression"), ""))
			continue
		}
		m.extra = append(m.extra, extra{e.Key, c.compile(claimsEnvironment, e.ValueExpression, path.Child("valueExpression"))})
	}
	if namesUser && !c.verified {
		c.errs = append(c.errs, field.Invalid(username.Child("expression"), from.Username.Expression,
			"claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "+
				"claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"))
	}
}

func (c *compiler) prefixedSource(p *apiserverv1.PrefixedClaimOrExpression, at *field.Path) source {
	s := c.source(p.Claim, p.Expression, at)
	s.prefix = ptr.Deref(p.Prefix, "")
	switch {
	case p.Claim != "" && p.Expression == "" && p.Prefix == nil:
		c.errs = append(c.errs, field.Required(at.Child("prefix"),
			"prefix is required when claim is set. It can be set to an empty string to disable prefixing"))
	case p.Expression != "" && p.Claim == "" && p.Prefix != nil:
		c.errs = append(c.errs, field.Invalid(at.Child("prefix"), s.prefix, "may not be specified when expression is set"))
	}
	return s
}

func (c *compiler) source(claim, text string, at *field.Path) source {
	s := source{claim: claim}
	switch {
	case claim != "" && text != "":
		c.errs = append(c.errs, field.Invalid(at, "", "claim and expression can't both be set"))
	case text != "":
		s.expression = c.compile(claimsEnvironment, text, at.Child("expression"))
	}
	return s
}

// extraKeyPattern is what may follow the domain in the name of an extra.
const extraKeyPattern = `[A-Za-z0-9/\-._~%!$&'()*+,;=:]+`

var extraKeyRegexp = regexp.MustCompile("^" + extraKeyPattern + "$")

// checkExtraKey checks the name of an extra.
func (c *compiler) checkExtraKey(key string, at *field.Path) {
	domain, path, found := strings.Cut(key, "/")
	switch {
	case key == "":
		c.errs = append(c.errs, field.Required(at, ""))
		return
	case !found || domain == "" || path == "":
		c.errs = append(c.errs, field.Invalid(at, key, `must be a domain-prefixed path (such as "acme.io/foo")`))
		return
	}
	for _, problem := range validation.IsDNS1123Subdomain(domain) {
		c.errs = append(c.errs, field.Invalid(at, domain, problem))
	}
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			c.errs = append(c.errs, field.Invalid(at, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"))
		}
	}
	if !extraKeyRegexp.MatchString(path) {
		c.errs = append(c.errs, field.Invalid(at, path, fmt.Sprintf("Invalid path (regex used for validation is '%s')", extraKeyPattern)))
	}
	if key != strings.ToLower(key) {
		c.errs = append(c.errs, field.Invalid(at, key, "must be lowercase"))
	}
}

func (c *compiler) compile(environment func() (*cel.Env, error), text string, at *field.Path, returns ...*cel.Type) *celexpression.Program {
	env, err := environment()
	if err != nil {
		c.errs = append(c.errs, field.InternalError(at, err))
		return nil
	}
	checked, problem := celexpression.Check(env, text, returns...)
	if problem != nil {
		detail, _, _ := strings.Cut(problem.Detail, " but got ")
		c.errs = append(c.errs, field.Invalid(at, text, detail))
		return nil
	}
	c.email = c.email || checked.Selects(claimsVar, authn.ClaimEmail)
	c.verified = c.verified || checked.Selects(claimsVar, authn.ClaimEmailVerified)
	return checked.Program
}
