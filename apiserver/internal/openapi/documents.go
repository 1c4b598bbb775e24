package openapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

const product = "Kubernetes"

// model is the whole API, described once for both versions.
type model struct {
	definitions definitions
	groups      []*group
}

// newModel describes the served resources, and those that can only be created.
func newModel(entries []registry.Served, created []core.Resource, customs []Custom) (*model, error) {
	m := &model{definitions: definitions{}}
	builtin := map[runtimeschema.GroupVersionResource]bool{}
	for _, e := range entries {
		builtin[e.Resource.Info().GVR()] = true
		m.group(e.Resource.Info().GVR().GroupVersion()).describe(e, m.definitions)
	}
	for _, resource := range created {
		obj, err := scheme.Scheme.New(resource.GVK())
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		m.group(resource.GVR().GroupVersion()).describeCreated(resource, obj, m.definitions)
	}
	if len(entries) > 0 {
		m.describeDiscovery()
	}
	for _, c := range customs {
		if builtin[c.GVR()] {
			continue // which is the one that is served
		}
		m.group(c.GVR().GroupVersion()).describeCustom(c, m.definitions)
	}
	return m, nil
}

func (m *model) group(version runtimeschema.GroupVersion) *group {
	for _, g := range m.groups {
		if g.version == version {
			return g
		}
	}
	g := m.newGroup(documentName(version), groupName(version.Group)+"_"+version.Version)
	g.version = version
	return g
}

func (m *model) newGroup(document, tag string) *group {
	g := &group{document: document, tag: tag, paths: map[string][]operation{}, pathParameters: map[string][]parameter{}}
	m.groups = append(m.groups, g)
	return g
}

// renderV2 returns the one v2 document of everything.
func (m *model) renderV2(release string) map[string]any {
	paths := map[string]any{}
	for _, g := range m.groups {
		for path := range g.paths {
			paths[path] = g.renderPath(path, v2)
		}
	}
	all := make(map[string]any, len(m.definitions))
	for name, definition := range m.definitions {
		all[name] = definition.render(v2)
	}
	return map[string]any{
		"swagger": "2.0", "info": info(release), "paths": paths, "definitions": all,
		"securityDefinitions": securitySchemes(), "security": []any{map[string]any{bearerToken: []any{}}},
	}
}

// renderV3 returns the v3 document of one group and version, with the
// definitions that it needs.
func (m *model) renderV3(g *group, release string) map[string]any {
	paths := make(map[string]any, len(g.paths))
	needed := map[string]any{}
	var need func(name string)
	need = func(name string) {
		if _, done := needed[name]; done {
			return
		}
		needed[name] = m.definitions[name].render(v3)
		m.definitions[name].references(need)
	}
	for path, operations := range g.paths {
		paths[path] = g.renderPath(path, v3)
		for i := range operations {
			operations[i].body.references(need)
			operations[i].answer.references(need)
		}
	}
	return map[string]any{
		"openapi": "3.0.0", "info": info(release), "paths": paths,
		"components": map[string]any{
			"schemas": needed, "securitySchemes": securitySchemes(),
		},
	}
}

const bearerToken = "BearerToken"

// securitySchemes are how users authenticate, which is described alike in both versions.
func securitySchemes() map[string]any {
	return map[string]any{bearerToken: map[string]any{
		"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication",
	}}
}

func info(release string) map[string]any {
	return map[string]any{"title": product, "version": release}
}

// renderPath returns one path.
func (g *group) renderPath(path string, v version) map[string]any {
	out := map[string]any{}
	if parameters := g.pathParameters[path]; len(parameters) > 0 {
		out["parameters"] = renderParameters(parameters, v)
	}
	for i := range g.paths[path] {
		op := &g.paths[path][i]
		out[strings.ToLower(op.method)] = op.render(v, g.tag)
	}
	return out
}

func renderParameters(parameters []parameter, v version) []any {
	out := make([]any, 0, len(parameters))
	for _, p := range parameters {
		one := map[string]any{"name": p.name, "in": p.in, "description": p.description}
		if p.required {
			one["required"] = true
		}
		if v == v2 {
			one["type"], one["uniqueItems"] = p.kind, true
		} else {
			one["schema"] = map[string]any{"type": p.kind, "uniqueItems": true}
		}
		out = append(out, one)
	}
	return out
}

func (o *operation) render(v version, tag string) map[string]any {
	out := map[string]any{"operationId": o.id, "description": o.description, "tags": []any{tag}}
	if o.action != "" {
		out[extensionAction], out[extensionKinds] = o.action, kindEntry(o.kind)
	}
	parameters := renderParameters(o.parameters, v)
	responses := map[string]any{
		strconv.Itoa(http.StatusUnauthorized): map[string]any{"description": "Unauthorized"},
	}
	for _, code := range o.codes {
		responses[strconv.Itoa(code)] = o.response(http.StatusText(code), v)
	}
	out["responses"] = responses
	if v == v2 {
		out["produces"], out["schemes"] = o.produces, []any{"https"}
		if o.consumes != nil {
			out["consumes"] = o.consumes
		}
		if o.body != nil {
			body := map[string]any{"name": "body", "in": "body", "schema": o.body.render(v)}
			if o.method != http.MethodDelete { // whose options may be omitted
				body["required"] = true
			}
			parameters = append(parameters, body)
		}
	} else if o.body != nil {
		body := map[string]any{"content": contents(o.consumes, o.body)}
		if o.method != http.MethodDelete {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	return out
}

func (o *operation) response(text string, v version) map[string]any {
	out := map[string]any{"description": text}
	if v == v2 {
		out["schema"] = o.answer.render(v)
	} else {
		out["content"] = contents(o.produces, o.answer)
	}
	return out
}

func contents(types []string, s *schema) map[string]any {
	out := make(map[string]any, len(types))
	for _, t := range types {
		out[t] = map[string]any{"schema": s.render(v3)}
	}
	return out
}
