package customresourcedefinition

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDefinitions compares the errors in definitions with kube-apiserver
// 1.37's. change is applied to a valid definition.
func TestDefinitions(t *testing.T) {
	const v1 = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`
	const bad = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {p: {type: integer, default: x}}}}}`
	schema := func(s string) string {
		return `versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: ` + s + `}}]`
	}
	property := func(p string) string { return schema(`{type: object, properties: {p: ` + p + `}}`) }
	said := func(s string) string {
		return schema(`{type: object, properties: {p: {type: string}}, anyOf: [` + s + `]}`)
	}
	version := func(s string) string {
		return `versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}, num: {type: number}, m: {type: object, additionalProperties: {type: string}}}}}, ` + s + `}]`
	}
	const (
		label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric " +
			"character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
		root = "spec.validation.openAPIV3Schema"
		p    = root + ".properties[p]"
		any0 = root + ".anyOf[0]"
	)
	for change, want := range map[string][]string{
		"": nil,
		"versions: [" + v1 + ", " + v1 + "]": {"spec.versions: Invalid value: …: must contain unique version names",
			"spec.versions: Invalid value: …: must have exactly one version marked as storage version",
			`status.storedVersions: Invalid value: ["v1"]: must have the storage version v1`},
		"versions: [" + v1 + ", " + strings.Replace(v1, "v1", "v2", 1) +
			"]": {"spec.versions: Invalid value: …: must have exactly one version marked as storage version",
			`status.storedVersions: Invalid value: ["v1"]: must have the storage version v2`},
		"versions: [" + strings.Replace(v1, "v1", "V1", 1) + "]": {`spec.versions[0].name: Invalid value: "V1": ` + label,
			`spec.version: Invalid value: "V1": ` + label},
		"names: {plural: xs, kind: X, singular: x, shortNames: [''], categories: ['']}": {
			`spec.names.shortNames[0]: Invalid value: "": ` + label, `spec.names.categories[0]: Invalid value: "": ` + label},
		"conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1, v1, ''], clientConfig: {url: 'https://x'}}}": {
			`spec.conversion.conversionReviewVersions[1]: Invalid value: "v1": duplicate version`,
			`spec.conversion.conversionReviewVersions[2]: Invalid value: "": ` + label},
		"{scope: '', names: {plural: xs, kind: ''}}": {"spec.scope: Required value", "spec.names.singular: Required value", "spec.names.kind: Required value",
			"spec.names.listKind: Required value"},
		"preserveUnknownFields: true\nconversion: {strategy: x}": {`spec.conversion.strategy: Invalid value: "x": must be None if spec.preserveUnknownFields is true`,
			`spec.conversion.strategy: Unsupported value: "x": supported values: "None", "Webhook"`,
			"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"},

		property("{x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}"): {p +
			".type: Required value: must be object if x-kubernetes-embedded-resource is true"},
		property("{x-kubernetes-int-or-string: true, x-kubernetes-preserve-unknown-fields: true}"): {p +
			".x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true"},
		property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, default: {}}"): {
			p + ".default.apiVersion: Required value", p + ".default.kind: Required value"},
		property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, default: {apiVersion: 1, " +
			"kind: A, metadata: {name: '%'}}}"): {
			p + ".default.apiVersion: Invalid value: 1: must be a string", p + `.default.metadata.name: Invalid value: "%": may not contain '%'`},
		property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, default: {apiVersion: v1, " +
			"kind: A, metadata: {name: 1}}}"): {
			p + `.default.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string`},
		property("{type: object, default: {a: {kind: A}}, additionalProperties: {type: object, x-kubernetes-embedded-resource: true, " +
			"x-kubernetes-preserve-unknown-fields: true}}"): {
			p + ".default[a].apiVersion: Required value"},
		property("{type: object, x-kubernetes-embedded-resource: true, properties: {apiVersion: {type: string, default: a/b/c}}}"): {
			p +
				`.properties[apiVersion].default: Invalid value: "a/b/c": must result in valid metadata: apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`},
		property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, additionalProperties: true}"): {
			p + ".additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set"},
		property("{type: object, additionalProperties: {type: object, properties: {a: {type: integer, enum: [1], default: 7}}}}"): nil,
		property("{type: array, items: {type: array, items: {type: object}}, default: [[{a: 2}]]}"): {p +
			`.default: Invalid value: [[{"a":2}]]: must not have unknown fields`},
		property("{type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}, default: [{a: 2}]}"): nil,
		property("{type: object, enum: [{a: 1}], default: {a: 2}}"): {p + `.default: Invalid value: {"a":2}: must not have unknown fields`,
			p + `.default: Unsupported value: {"a":2}: supported values: "{\"a\":1}"`},
		property("{type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object, properties: {labels: {type: object, " +
			"additionalProperties: {type: string, default: a}}}}}}"): {
			p +
				".properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties " +
				"applying to object metadata"},
		property("{type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object, x-kubernetes-embedded-resource: true, " +
			"x-kubernetes-preserve-unknown-fields: true}}}"): {
			p + ".properties[metadata].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta"},
		schema("{type: object, properties: {metadata: {type: object, properties: {name: {type: string, default: '%'}}}}}"): {
			root + ".properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
			root +
				`.properties[metadata].properties[name].default: Invalid value: "%": must result in valid metadata: metadata.name: Invalid value: "%": may not contain '%'`},
		property("{type: 'null'}"): {p + `.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"`,
			p + ".type: Forbidden: type cannot be set to null, use nullable as an alternative"},
		property("{x-kubernetes-list-type: foo}"): {p + ".type: Required value: must not be empty for specified object fields",
			p + ".type: Required value: must be array if x-kubernetes-list-type is specified",
			p + `.x-kubernetes-list-type: Unsupported value: "foo": supported values: "atomic", "set", "map"`},
		property("{type: array, x-kubernetes-list-type: map}"): {p + ".items: Required value: must be specified",
			p + ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
			p + ".items: Required value: must have a schema if x-kubernetes-list-type is map"},
		property("{type: array, default: [a, a], items: {type: string}, x-kubernetes-list-type: set}"):      nil,
		property("{type: object, default: {}, required: [a], properties: {a: {type: string, default: b}}}"): {p + ".default.a: Required value"},
		schema("{type: object, additionalProperties: {type: string}}"): {root +
			".additionalProperties: Forbidden: must not be used at the root"},
		schema("{type: object, $schema: foo, id: x}"): {root + ".id: Forbidden: id is not supported"},
		schema(`{type: object, x-kubernetes-validations: [{rule: "a\nb"}]}`): {root +
			".x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks"},
		said("{additionalProperties: {type: string}}"): {any0 + ".additionalProperties: Forbidden: must be undefined to be structural"},
		said("{title: x, pattern: '[', x-kubernetes-preserve-unknown-fields: true, x-kubernetes-list-type: set}"): {
			any0 + ".pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
			any0 + ".title: Forbidden: must be empty to be structural",
			any0 + ".x-kubernetes-list-type: Forbidden: must be undefined to be structural",
			any0 + ".x-kubernetes-preserve-unknown-fields: Forbidden: must be false to be structural",
			any0 + ".type: Required value: must be array if x-kubernetes-list-type is specified"},

		version("selectableFields: [{jsonPath: .m.x}]"):    nil,
		version("selectableFields: [{jsonPath: '.a[0]'}]"): {`spec.selectableFields[0].jsonPath: Invalid value: ".a[0]": is an invalid path: array notation is not allowed`},
		version("selectableFields: [{jsonPath: .num}]"):    {`spec.selectableFields[0].jsonPath: Invalid value: ".num": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.`},
		version("selectableFields: [{jsonPath: a.b}]"):     {`spec.selectableFields[0].jsonPath: Invalid value: "a.b": is an invalid path: expected [ or . but got: a`},
		version("selectableFields: [{jsonPath: .a..b}]"):   {`spec.selectableFields[0].jsonPath: Invalid value: ".a..b": is an invalid path: does not refer to a valid field`},
		version("selectableFields: [{jsonPath: .zz}, {jsonPath: .zz}, {jsonPath: .num}, {jsonPath: .a}, {jsonPath: .a}]"): {
			`spec.selectableFields[0].jsonPath: Invalid value: ".zz": is an invalid path: does not refer to a valid field`,
			`spec.selectableFields[1].jsonPath: Invalid value: ".zz": is an invalid path: does not refer to a valid field`,
			`spec.selectableFields[2].jsonPath: Invalid value: ".num": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.`, `spec.selectableFields[4].jsonPath: Duplicate value: ".a"`},
		`versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {metadata: {type: object, properties: {name: {type: string}}}}}}, selectableFields: [{jsonPath: .metadata.name}]}]`: {
			`spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata`},

		version("subresources: {status: {}}"): nil,
		`versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: array, items: {type: string}, not: {}}}}]`: {
			root + `.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled`,
			root + `.type: Invalid value: "array": must be object at the root`},
		`versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-map-type: atomic}}}]`: nil,
		`versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-map-type: atomic}}}]`: {
			root + `: Invalid value: {"type":"object","x-kubernetes-map-type":"atomic"}: only ` + rootFields +
				` fields are allowed at the root of the schema if the status subresource is enabled`},

		// What versions have of their own comes before the names, what is common after them.
		"names: {plural: xs, kind: X, singular: X}\nversions: [" + bad + ", {name: v2, schema: {openAPIV3Schema: {type: object}}}]": {
			`spec.versions[0].schema.openAPIV3Schema.properties[p].default: Invalid value: "string":  in body must be of type integer: "string"`,
			`spec.names.singular: Invalid value: "X": ` + label},
		"names: {plural: xs, kind: X, singular: X}\nversions: [" + bad + "]": {
			`spec.names.singular: Invalid value: "X": ` + label,
			`spec.validation.openAPIV3Schema.properties[p].default: Invalid value: "string":  in body must be of type integer: "string"`},
		"versions: [" + v1 + ", {name: v2, selectableFields: [{jsonPath: .a}], additionalPrinterColumns: [{name: '', type: string, jsonPath: .a}]}]": {
			"spec.versions[1].schema.openAPIV3Schema: Required value", "spec.versions[1].additionalPrinterColumns[0].name: Required value",
			"spec.versions[1].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"},
		"versions: [{name: v1, served: true, storage: true, schema: null, selectableFields: [{jsonPath: .a}], additionalPrinterColumns: [{name: '', " +
			"type: string, jsonPath: .a}]}]": {
			"spec.versions[0].schema.openAPIV3Schema: Required value", "spec.additionalPrinterColumns[0].name: Required value",
			`spec.selectableFields: Invalid value: "": may only be set when validations.schema is included`},

		version("subresources: {scale: {specReplicasPath: .spec., statusReplicasPath: .status..a, labelSelectorPath: ..spec}}"): {
			`spec.subresources.scale.labelSelectorPath: Invalid value: "..spec": should be a json path under either .spec or .status`},
	} {
		d := &Definition{}
		whole := "{metadata: {name: xs.a.io}, spec: {group: a.io, scope: Cluster, names: {plural: xs, kind: X}, versions: [" + v1 + "]}}"
		if err := yaml.Unmarshal([]byte(whole), d); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(change), &d.Spec); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		Default(d)
		var got []string
		for _, e := range validate(t.Context(), d, nil) {
			text := e.Error()
			if from := strings.Index(text, "Invalid value: [{"); from >= 0 {
				text = text[:from] + "Invalid value: …" + text[strings.LastIndex(text, "]: ")+1:]
			}
			got = append(got, text)
		}
		if g, w := strings.Join(got, "\n "), strings.Join(want, "\n "); g != w {
			t.Errorf("%s:\n got\n %s\nwant\n %s", change, g, w)
		}
	}
}

// TestUpdates: what was stored before a rule existed may stay, as far as it does for
// kube-apiserver 1.37; a version that changes is checked together with what it shares.
func TestUpdates(t *testing.T) {
	const (
		head     = "metadata: {name: xs.a.io}\nspec: {group: a.io, scope: Cluster, names: {plural: xs, kind: X}, preserveUnknownFields: true, versions: ["
		plain    = `{name: v1, served: true, storage: true}`
		root     = `schema: {openAPIV3Schema: {type: object, minProperties: 1}}`
		shared   = `{name: v1, served: true, storage: true, ` + root + `}, {name: v2, served: true, storage: false, ` + root
		required = "spec.versions[0].schema.openAPIV3Schema: Required value"
		ruled    = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`
		column   = `}}}}}, additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]}]}`
		dear     = `l: {type: array, items: {type: string, x-kubernetes-validations: [{rule: "self.matches('a')"}]}}`
		dearAt   = "spec.validation.openAPIV3Schema.properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Forbidden: "
		dearer   = "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength " +
			"where arrays, maps, and strings are declared)"
		odd    = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {}}}}`
		oddAt  = "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"
		newest = `n: {type: array, maxItems: 3, items: {type: integer}, x-kubernetes-validations: [{rule: "self.includes(1)"}]}`
	)
	read := func(text string) *Definition {
		d := &Definition{}
		if err := yaml.Unmarshal([]byte(text), d); err != nil {
			t.Fatal(err)
		}
		Default(d)
		addStoredVersion(d)
		return d
	}
	for name, c := range map[string]struct{ old, now, want string }{
		"no schema":                     {plain + "]}", plain + "]}", ""},
		"no schema, another column":     {plain + "]}", plain[:len(plain)-1] + ", additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]}]}", ""},
		"no schema, a second version":   {plain + "]}", plain + ", {name: v2, served: true, storage: false, " + root + "}]}", ""},
		"no schema, fields dropped":     {plain + "]}", plain + "], preserveUnknownFields: false}", required + ": because otherwise all fields are pruned"},
		"an odd schema":                 {odd + "}]}", odd + "}]}", ""},
		"an odd schema, fields dropped": {odd + "}]}", odd + "}], preserveUnknownFields: false}", oddAt},
		"an odd schema, another column, fields dropped": {
			odd + "}]}", odd + ", additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]}], preserveUnknownFields: false}", oddAt,
		},
		"a dear rule, fields dropped": {ruled + dear + "}}}}}}]}", ruled + dear + "}}}}}}], preserveUnknownFields: false}", ""},
		"a schema is taken away":      {plain[:len(plain)-1] + ", " + root + "}]}", plain + "]}", required},
		"a status beside what all versions have": {shared + "}]}", shared + ", subresources: {status: {}}}]}",
			`spec.validation.openAPIV3Schema: Invalid value: {"type":"object","minProperties":1}: only ` + rootFields +
				" fields are allowed at the root of the schema if the status subresource is enabled"},
		"a dear rule, another column": {ruled + dear + "}}}}}}]}", ruled + dear + column, ""},
		"a dear rule, more fields": {ruled + dear + "}}}}}}]}", ruled + dear + ", b: {type: string}" + column,
			dearAt + "estimated rule cost " + dearer + "\n" +
				dearAt + "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema\n" +
				"spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema " +
				dearer},
		"a stored rule, more fields": {ruled + newest + "}}}}}}]}", ruled + newest + ", b: {type: string}" + column, ""},
		"such a status from before":  {shared + ", subresources: {status: {}}}]}", shared + ", subresources: {status: {}}}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := read(head + c.old)
			now := read(strings.Replace(head, "preserveUnknownFields: true, ", "", 1) + c.now)
			now.Spec.PreserveUnknownFields = !strings.HasSuffix(c.now, "false}")
			var got []string
			for _, e := range validate(t.Context(), now, old) {
				got = append(got, e.Error())
			}
			if g := strings.Join(got, "\n"); g != c.want {
				t.Errorf("got %s, want %s", g, c.want)
			}
		})
	}
}
