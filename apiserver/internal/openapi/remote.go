package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Remote is a group and version that another server describes.
type Remote struct {
	runtimeschema.GroupVersion
	// V3Path is the location of its v3 document, as Locate found it; empty if there is none.
	V3Path string
	// V2 is what Extract took from its v2 document; nil if nothing.
	V2 []byte
}

const definitionRef, parameterRef = "#/definitions/", "#/parameters/"

// Locate finds the document of a group and version in another server's list of
// v3 documents. Only the hash of the given location is used.
func Locate(index []byte, gv runtimeschema.GroupVersion) (string, error) {
	var list struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index, &list); err != nil {
		return "", fmt.Errorf("decode the list of its documents: %w", err)
	}
	name := documentName(gv)
	at, ok := list.Paths[name]
	if !ok {
		return "", nil
	}
	place, err := url.Parse(at.ServerRelativeURL)
	if err != nil {
		return "", fmt.Errorf("decode the list of its documents: %w", err)
	}
	if hash := place.Query().Get("hash"); hash != "" {
		return groupURL(name, hash), nil
	}
	return discoveryPath + "/" + name, nil
}

// Extract takes from another server's v2 document what is about a group and
// version, with the definitions that this needs.
func Extract(document []byte, gv runtimeschema.GroupVersion) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(document, &whole); err != nil {
		return nil, fmt.Errorf("decode its description: %w", err)
	}
	shared := mapOf(whole["parameters"])
	definitions := mapOf(whole["definitions"])
	paths, needed := map[string]any{}, map[string]any{}
	var need func(name string)
	need = func(name string) {
		definition, ok := definitions[name].(map[string]any)
		if _, done := needed[name]; done || !ok {
			return
		}
		needed[name] = definition
		eachReference(definition, need)
	}
	prefix := "/" + documentName(gv) + "/"
	for path, item := range mapOf(whole["paths"]) {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		inlineParameters(mapOf(item), shared)
		paths[path] = item
		eachReference(item, need)
	}
	return json.Marshal(map[string]any{"paths": paths, "definitions": needed})
}

// inlineParameters inlines shared parameters, and leaves out those that API
// requests don't have: in forms and headers.
func inlineParameters(item, shared map[string]any) {
	spell := func(of map[string]any) {
		list, ok := of["parameters"].([]any)
		if !ok {
			return
		}
		out := make([]any, 0, len(list))
		for _, value := range list {
			p := mapOf(value)
			if name, ok := strings.CutPrefix(stringOf(p["$ref"]), parameterRef); ok {
				p = mapOf(shared[name])
			}
			if in := stringOf(p["in"]); in == "query" || in == "path" || in == "body" {
				out = append(out, p)
			}
		}
		of["parameters"] = out
	}
	spell(item)
	for method := range methodNumbers {
		spell(mapOf(item[method]))
	}
}

// eachReference calls f for every definition that a tree refers to.
func eachReference(tree any, f func(name string)) {
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			if name, ok := strings.CutPrefix(stringOf(value), definitionRef); ok && key == "$ref" {
				f(name)
				continue
			}
			eachReference(value, f)
		}
	case []any:
		for _, value := range t {
			eachReference(value, f)
		}
	}
}

// mergeRemote adds what another server described to the v2 document. What exists
// stays; a different definition with a name that is taken gets another name.
func mergeRemote(document map[string]any, second []byte) error {
	var other map[string]any
	if err := json.Unmarshal(second, &other); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	paths, definitions := mapOf(document["paths"]), mapOf(document["definitions"])
	theirs := mapOf(other["definitions"])
	names, err := matchDefinitions(theirs, definitions)
	if err != nil {
		return err
	}
	for name, definition := range theirs {
		if _, have := definitions[names[name]]; !have {
			renameReferences(definition, names)
			definitions[names[name]] = definition
		}
	}
	for path, item := range mapOf(other["paths"]) {
		if _, have := paths[path]; !have {
			renameReferences(item, names)
			paths[path] = item
		}
	}
	return nil
}

// matchDefinitions finds the name that each of their definitions has among ours.
func matchDefinitions(theirs, ours map[string]any) (map[string]string, error) {
	names := make(map[string]string, len(theirs))
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		text, err := json.Marshal(theirs[name])
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		names[name] = name
		for n := 2; ; n++ {
			have, taken := ours[names[name]]
			if !taken {
				break
			}
			same, err := json.Marshal(have)
			if err != nil {
				return nil, fmt.Errorf("openapi: %w", err)
			}
			if bytes.Equal(text, same) {
				break
			}
			names[name] = name + "_v" + strconv.Itoa(n)
		}
	}
	return names, nil
}

// renameReferences updates references to renamed definitions, and drops dangling ones.
func renameReferences(tree any, names map[string]string) {
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			if name, ok := strings.CutPrefix(stringOf(value), definitionRef); ok && key == "$ref" {
				if delete(t, key); names[name] != "" {
					t[key] = definitionRef + names[name]
				}
				continue
			}
			renameReferences(value, names)
		}
	case []any:
		for _, value := range t {
			renameReferences(value, names)
		}
	}
}
