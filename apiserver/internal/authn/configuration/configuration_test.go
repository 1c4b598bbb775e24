package configuration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"

// file is a configuration with a valid issuer, except for the given parts.
func file(issuer, more string) string {
	if !strings.Contains(issuer, "audiences") {
		issuer += ", audiences: [x]"
	}
	if !strings.Contains(more, "username:") {
		more = "claimMappings: {username: {claim: sub, prefix: ''}}, " + more
	}
	return header + "jwt:\n- {issuer: {url: 'https://a.test'" + issuer + "}, " + more + "}\n"
}

// TestRefusals: kube-apiserver v1.37.0's messages for such files.
func TestRefusals(t *testing.T) {
	const unverified = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or " +
		"claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
	for name, test := range map[string]struct{ content, want string }{
		"nothing said": {header + "jwt:\n- issuer: {url: http://x}\n",
			`[jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https, jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required, jwt[0].claimMappings.username: Required value: claim or expression is required]`},
		"unknown field":   {file(", foo: x", ""), `failed to load authentication configuration: strict decoding error: unknown field "jwt[0].issuer.foo"`},
		"another version": {"apiVersion: apiserver.config.k8s.io/v9\nkind: AuthenticationConfiguration\n", "must be of kind AuthenticationConfiguration of"},
		"the server's own": {strings.ReplaceAll(file("", ""), "a.test", "own.test"),
			`issuer.url: Invalid value: "https://own.test": URL must not overlap with disallowed issuers: [https://own.test]`},
		"a user in the URL": {strings.ReplaceAll(file("", ""), "a.test", "u:p@x"), "URL must not contain a username or password"},
		"a query":           {strings.ReplaceAll(file("", ""), "a.test", "x?q=1"), "URL must not contain a query"},
		"a fragment":        {strings.ReplaceAll(file("", ""), "a.test", "x#f"), "URL must not contain a fragment"},
		"no URL at all":     {strings.ReplaceAll(file("", ""), "https://a.test", "%zz"), `parse "%zz": invalid URL escape "%zz"`},
		"discovery at the URL": {file(", discoveryURL: 'https://a.test/'", ""),
			`jwt[0].issuer.discoveryURL: Invalid value: "https://a.test/": discoveryURL must be different from URL`},
		"twice": {file("", "") + "- {issuer: {url: 'https://a.test', audiences: [x]}, claimMappings: {username: {claim: a, prefix: ''}}}\n",
			`jwt[1].issuer.url: Duplicate value: "https://a.test"`},
		"two audiences": {file(", audiences: [a, b]", ""),
			`jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences`},
		"audiences": {file(", audienceMatchPolicy: MatchAny, audiences: [a, a, '']", ""),
			`[jwt[0].issuer.audiences[1]: Duplicate value: "a", jwt[0].issuer.audiences[2]: Required value]`},
		"audience policy": {file(", audienceMatchPolicy: Foo", ""), "audienceMatchPolicy must be empty or MatchAny for single audience"},
		"authority": {file(", certificateAuthority: xx", ""),
			`jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates`},
		"egress":         {file(", egressSelectorType: foo", ""), "egress selector must be either controlplane or cluster"},
		"egress by name": {file(", egressSelectorType: cluster", ""), "egress selectors are not supported by this server"},
		"username bare": {file("", "claimMappings: {username: {claim: a}}"),
			"jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing"},
		"username of both": {file("", "claimMappings: {username: {claim: a, expression: claims.a}}"),
			`jwt[0].claimMappings.username: Invalid value: "": claim and expression can't both be set`},
		"username with prefix": {file("", "claimMappings: {username: {expression: claims.a, prefix: ''}}"),
			`jwt[0].claimMappings.username.prefix: Invalid value: "": may not be specified when expression is set`},
		"uid of both": {file("", "claimMappings: {username: {claim: a, prefix: ''}, uid: {claim: a, expression: claims.a}}"),
			`jwt[0].claimMappings.uid: Invalid value: "": claim and expression can't both be set`},
		"email":          {file("", "claimMappings: {username: {expression: claims.email}}"), `Invalid value: "claims.email": ` + unverified},
		"optional email": {file("", `claimMappings: {username: {expression: 'claims.?email.orValue("")'}}`), unverified},
		"verified by an index": {file("",
			`claimMappings: {username: {expression: claims.email}}, claimValidationRules: [{expression: 'claims["email_verified"] == true'}]`), unverified},
		"verified for groups": {file("", `claimMappings: {username: {expression: claims.email}, groups: {expression: 'string(claims.email_verified)'}}`),
			unverified},
		"anonymous": {header + "anonymous: {enabled: false, conditions: [{path: /a}]}\n", "enabled should be set to true when conditions are defined"},
		"too many": {header + "jwt: [" + strings.Repeat("{},", 65) + "]\n",
			"invalid authentication configuration: jwt: Too many: 65: must have at most 64 items"},
		"no expression of bool": {file("", "claimValidationRules: [{expression: claims.x}]"),
			`jwt[0].claimValidationRules[0].expression: Invalid value: "claims.x": must evaluate to bool`},
		"rules": {file("",
			"claimValidationRules: [{claim: a}, {claim: a}, {claim: b, message: m}, {claim: a, expression: 'true'}, {}, {expression: 'claims.x == 1', requiredValue: "+
				"b}, {expression: 'claims.x == 1'}]"),
			`[jwt[0].claimValidationRules[1].claim: Duplicate value: "a", jwt[0].claimValidationRules[2].message: Invalid value: "m": may not be specified when claim is set, ` +
				`jwt[0].claimValidationRules[3]: Invalid value: "a": claim and expression can't both be set, jwt[0].claimValidationRules[4]: Required value: claim or expression is required, ` +
				`jwt[0].claimValidationRules[5].requiredValue: Invalid value: "b": may not be specified when expression is set, jwt[0].claimValidationRules[6].expression: Duplicate value: "claims.x == 1"]`},
		"rules about users": {file("",
			`userValidationRules: [{expression: ''}, {expression: 'user.uid == "a"'}, {expression: 'user.uid == "a"'}, {expression: user.foo}]`),
			`[jwt[0].userValidationRules[0].expression: Required value, jwt[0].userValidationRules[2].expression: Duplicate value: "user.uid == \"a\"", jwt[0].userValidationRules[3].expression: Invalid value: "user.foo": compilation failed: ERROR: <input>:1:5: undefined field 'foo'`},
		"extra": {file("",
			`claimMappings: {username: {claim: a, prefix: ''}, extra: [{key: '', valueExpression: ''}, {key: a, valueExpression: '1'}, {key: a.b/c, valueExpression: '1'}, {key: a.b/c, valueExpression: '1'}, `+
				`{key: k8s.io/a, valueExpression: '1'}, {key: a.b/C, valueExpression: '1'}, {key: 'a.b/c d', valueExpression: '1'}]}`),
			`[jwt[0].claimMappings.extra[0].key: Required value, jwt[0].claimMappings.extra[0].valueExpression: Required value, jwt[0].claimMappings.extra[1].key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo"), ` +
				`jwt[0].claimMappings.extra[3].key: Duplicate value: "a.b/c", jwt[0].claimMappings.extra[4].key: Invalid value: "k8s.io/a": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use, ` +
				`jwt[0].claimMappings.extra[5].key: Invalid value: "a.b/C": must be lowercase, jwt[0].claimMappings.extra[6].key: Invalid value: "c d": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')]`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.content), []string{"https://own.test"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

// TestUser: the user of a token, or why there is none.
func TestUser(t *testing.T) {
	const claims = `{"sub": "jane", "email": "j@test", "email_verified": true, "groups": ["a", "b"], "team": "red", "n": 7, "roles": "x,y", "iat": 10, "exp": 70}`
	sub := "claimMappings: {username: {claim: sub, prefix: 'id:'}"
	for name, test := range map[string]struct{ mapping, claims, want string }{
		"claims":      {sub + ", groups: {claim: groups, prefix: 'g:'}, uid: {claim: team}}", claims, `id:jane "red" [g:a g:b] map[]`},
		"one group":   {sub + ", groups: {claim: team, prefix: ''}}", claims, `id:jane "" [red] map[]`},
		"no groups":   {sub + ", groups: {claim: other, prefix: 'g:'}}", claims, `id:jane "" [] map[]`},
		"expressions": {`claimMappings: {username: {expression: 'claims.sub + "@" + claims.team'}, groups: {expression: 'claims.roles.split(",")'}, uid: {expression: 'string(claims.n)'}}`, claims, `jane@red "7" [x y] map[]`},
		"extra": {sub +
			`, extra: [{key: a.b/team, valueExpression: claims.team}, {key: a.b/none, valueExpression: 'claims.?none.orValue("")'}, {key: a.b/all, valueExpression: claims.groups}]}`, claims, `id:jane "" [] map[a.b/all:[a b] a.b/team:[red]]`},
		"a rule of a claim":    {sub + "}, claimValidationRules: [{claim: team, requiredValue: red}]", claims, `id:jane "" [] map[]`},
		"arithmetic":           {sub + "}, claimValidationRules: [{expression: 'claims.exp - claims.iat <= 60'}]", claims, `id:jane "" [] map[]`},
		"a rule broken":        {sub + "}, claimValidationRules: [{claim: team, requiredValue: blue}]", claims, `error: required claim "team" has a different value`},
		"a rule without claim": {sub + "}, claimValidationRules: [{claim: hd, requiredValue: x}]", claims, `error: required claim "hd" is missing`},
		"a message": {sub + "}, claimValidationRules: [{expression: 'claims.team == \"blue\"', message: the team is blue}]", claims,
			"error: the team is blue"},
		"no message": {sub + "}, claimValidationRules: [{expression: 'claims.team == \"blue\"'}]", claims,
			`error: validation expression "claims.team == \"blue\"" failed`},
		"no such key": {sub + "}, claimValidationRules: [{expression: 'claims.hd == \"x\"'}]", claims,
			"error: validation expression \"claims.hd == \\\"x\\\"\": no such key: hd"},
		"a rule of the user": {sub + `}, userValidationRules: [{expression: '!user.username.startsWith("id:j")', message: no j}]`, claims, "error: no j"},
		"all of the user": {sub + `}, userValidationRules: [{expression: 'user.groups.size() == 0 && user.uid == "" && user.extra.size() == 0'}]`, claims,
			`id:jane "" [] map[]`},
		"its id": {sub + `}, userValidationRules: [{expression: 'user.extra["authentication.kubernetes.io/credential-id"] == ["JTI=7"]'}]`,
			`{"sub": "jane", "jti": "7"}`, `id:jane "" [] map[authentication.kubernetes.io/credential-id:[JTI=7]]`},
		"an id beside extra": {sub + `, extra: [{key: a.b/c, valueExpression: claims.sub}]}`, `{"sub": "jane", "jti": "7"}`,
			`map[a.b/c:[jane] authentication.kubernetes.io/credential-id:[JTI=7]]`},
		"a number as its id":  {sub + "}", `{"sub": "jane", "jti": 7}`, `id:jane "" [] map[]`},
		"no name":             {sub + "}", `{}`, "error: username: claim \"sub\" is missing or not a string"},
		"an empty name":       {sub + "}", `{"sub": ""}`, "error: username: is empty"},
		"a name that is none": {"claimMappings: {username: {expression: 'true'}}", claims, "error: username: the value of the expression is missing or not a string"},
		"groups of numbers":   {sub + ", groups: {expression: '[1]'}}", claims, "error: groups: the value of the expression contains a value that is not a string"},
		"a number for groups": {sub + ", groups: {claim: 'n', prefix: ''}}", claims, `error: groups: claim "n" is neither a string nor a list of strings`},
		"distributed groups": {sub + ", groups: {claim: g, prefix: ''}}", `{"sub": "a", "_claim_names": {"g": "there"}}`,
			`error: groups: claim "g" is a distributed claim, which is not supported`},
		"an email of nobody": {"claimMappings: {username: {claim: email, prefix: ''}}", `{"email": "a@b", "email_verified": false}`,
			"error: the email address has not been verified"},
		"an email": {"claimMappings: {username: {claim: email, prefix: ''}}", claims, `j@test "" [] map[]`},
		"an email expression": {"claimMappings: {username: {expression: 'claims.?email_verified.orValue(false) ? claims.email : \"\"'}}", `{"email": "a@b"}`,
			"error: username: is empty"},
		"no end": {sub +
			`}, claimValidationRules: [{expression: '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, true)))))))'}]`, claims, "cost"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Parse([]byte(file("", test.mapping)), nil)
			if err != nil {
				t.Fatal(err)
			}
			var raw map[string]json.RawMessage
			if err := json.Unmarshal([]byte(test.claims), &raw); err != nil {
				t.Fatal(err)
			}
			user, err := read.Issuers[0].Mapping.User(t.Context(), raw)
			got := fmt.Sprintf("error: %v", err)
			if err == nil {
				got = fmt.Sprintf("%s %q %v %v", user.Username, user.UID, user.Groups, user.Extra)
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}
