package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// operation is one method on one path.
type operation struct {
	method, id, description, action string
	kind                            runtimeschema.GroupVersionKind
	parameters                      []parameter
	consumes, produces              []string
	body, answer                    *schema
	codes                           []int
}

type parameter struct {
	name, in, kind, description string
	required                    bool
}

// group is what one group and version has, or another document of v3.
type group struct {
	version runtimeschema.GroupVersion
	// document is the v3 document's name, and tag what generated clients call its operations by.
	document, tag string
	// paths are operations by path; pathParameters stand for all of a path's.
	paths          map[string][]operation
	pathParameters map[string][]parameter
}

// queryParameter is a query parameter, which is described by the options it belongs to.
func queryParameter(options documented, name, kind string) parameter {
	return parameter{name: name, in: "query", kind: kind, description: options.SwaggerDoc()[name]}
}

var (
	lists, patches, deletes = metav1.ListOptions{}, metav1.PatchOptions{}, metav1.DeleteOptions{}

	pretty          = parameter{name: "pretty", in: "query", kind: "string", description: prettyText}
	dryRun          = queryParameter(patches, "dryRun", "string")
	fieldManager    = queryParameter(patches, "fieldManager", "string")
	fieldValidation = queryParameter(patches, "fieldValidation", "string")
	force           = queryParameter(patches, "force", "boolean")

	writeParameters  = []parameter{dryRun, fieldManager, fieldValidation}
	patchParameters  = []parameter{dryRun, fieldManager, fieldValidation, force}
	deleteParameters = []parameter{
		dryRun, queryParameter(deletes, "gracePeriodSeconds", "integer"),
		queryParameter(deletes, "ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
		queryParameter(deletes, "orphanDependents", "boolean"), queryParameter(deletes, "propagationPolicy", "string"),
	}
	// selectParameters select what of a collection is deleted, listParameters what
	// is listed or watched.
	selectParameters = []parameter{
		queryParameter(lists, "continue", "string"), queryParameter(lists, "fieldSelector", "string"),
		queryParameter(lists, "labelSelector", "string"),
		queryParameter(lists, "limit", "integer"), queryParameter(lists, "resourceVersion", "string"),
		queryParameter(lists, "resourceVersionMatch", "string"),
		queryParameter(lists, "sendInitialEvents", "boolean"), queryParameter(lists, "timeoutSeconds", "integer"),
	}
	listParameters = byName(queryParameter(lists, "allowWatchBookmarks", "boolean"), queryParameter(lists, "watch", "boolean"))

	namespaceParameter = parameter{
		name: "namespace", in: "path", kind: "string", required: true,
		description: "object name and auth scope, such as for teams and projects",
	}

	objectTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	listTypes   = append(append([]string{}, objectTypes...), "application/json;stream=watch",
		"application/vnd.kubernetes.protobuf;stream=watch")
	patchTypes = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
		"application/apply-patch+yaml"}
)

const prettyText = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or " +
	"command-line HTTP tool (curl and wget)."

// byName are selectParameters and more, ordered by name.
func byName(more ...parameter) []parameter {
	all := append(slices.Clone(selectParameters), more...)
	slices.SortFunc(all, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return all
}

// describe adds an entry's paths to its group.
func (g *group) describe(e registry.Served, d definitions) {
	info := e.Resource.Info()
	object := &schema{ref: d.define(reflect.TypeOf(e.Resource.New()).Elem())}
	d.addKind(object.ref, info.GVK())
	b := builder{group: g, info: info, definitions: d, object: object}
	b.addCollection()
	b.addObject()
	if info.HasStatus {
		b.addPart("status")
	}
	for _, part := range info.Subresources {
		b.addPart(part)
	}
	for _, sub := range e.Subresources {
		b.addSubresource(sub)
	}
	b.addWatches()
}

// describeCreated adds the path of a resource that can only be created: its
// objects are reviews or commands, and never stored.
func (g *group) describeCreated(resource core.Resource, obj any, d definitions) {
	object := &schema{ref: d.define(reflect.TypeOf(obj).Elem())}
	d.addKind(object.ref, resource.GVK())
	b := builder{group: g, info: registry.Info{Resource: resource}, definitions: d, object: object}
	b.addCreate(b.path())
}

type builder struct {
	group       *group
	info        registry.Info
	definitions definitions
	object      *schema
	kind        runtimeschema.GroupVersionKind // of object, where that is not the resource's
	// listed is the name of the list's definition; jsonOnly: the objects have no
	// protobuf form. Both are for custom resources.
	listed   string
	jsonOnly bool
}

// acrossNamespaces builds what is about the objects of all namespaces.
func (b *builder) acrossNamespaces() *builder {
	all := *b
	all.info.Namespaced = false
	return &all
}

func (b *builder) path(parts ...string) string {
	namespace := ""
	if b.info.Namespaced {
		namespace = "{namespace}"
	}
	path := strings.Join(append([]string{b.info.Path(namespace, "")}, parts...), "/")
	var parameters []parameter
	if len(parts) > 0 {
		parameters = append(parameters, parameter{
			name: "name", in: "path", kind: "string", required: true, description: "name of the " + b.operationKind().Kind,
		})
	}
	if namespace != "" {
		parameters = append(parameters, namespaceParameter)
	}
	b.group.pathParameters[path] = append(parameters, pretty)
	return path
}

// verbs are the verbs that resources declare, by action.
var verbs = map[string]string{"post": "create", "put": "update", "watchlist": "watch"}

func (b *builder) add(path string, op operation) {
	verb := op.action
	if other, ok := verbs[verb]; ok {
		verb = other
	}
	if verb != "connect" && !b.info.Serves(verb) {
		return
	}
	if op.kind.Empty() {
		op.kind = b.operationKind()
	}
	if op.consumes == nil {
		op.consumes = []string{"*/*"}
	}
	if op.produces == nil {
		op.produces = objectTypes
	}
	if b.jsonOnly {
		op.produces, op.consumes = withoutProtobuf(op.produces), withoutStrategic(op.consumes)
	}
	b.group.paths[path] = append(b.group.paths[path], op)
}

func withoutProtobuf(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return strings.Contains(t, "protobuf") })
}

func withoutStrategic(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return strings.Contains(t, "strategic") })
}

// operationID is the operation's name in upstream's form: readCoreV1NamespacedPodStatus.
// verb may have a part that follows the group and version: "connect Get".
func (b *builder) operationID(verb, subresource string) string {
	verb, more, _ := strings.Cut(verb, " ")
	name := verb + title(groupName(b.info.Group)) + title(b.info.Version) + more
	if b.info.Namespaced {
		name += "Namespaced"
	}
	return name + b.info.Kind + title(subresource)
}

// operationKind is the kind of what is sent and answered.
func (b *builder) operationKind() runtimeschema.GroupVersionKind {
	if b.kind.Empty() {
		return b.info.GVK()
	}
	return b.kind
}

// article is what stands before a kind: "an " before a vowel, nothing before a plural.
func article(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return ""
	case strings.ContainsAny(kind[:1], "AEIOU"):
		return "an "
	}
	return "a "
}

// groupName is a group's name as one word: "rbacAuthorization".
func groupName(group string) string {
	if group == "" {
		return "core"
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(group, ".k8s.io"), ".")
	for part := range strings.SplitSeq(rest, ".") {
		first += title(part)
	}
	return first
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// addCollection adds the path that lists and creates; namespaced resources also
// list on one without the namespace.
func (b *builder) addCollection() {
	path, kind := b.path(), b.info.Kind
	b.addCreate(path)
	list, reads := &schema{ref: b.list()}, "list"
	if b.info.Serves("watch") {
		reads = "list or watch"
	}
	lists := operation{
		method: http.MethodGet, action: "list", id: b.operationID("list", ""), description: reads + " objects of kind " + kind,
		parameters: listParameters, produces: listTypes, answer: list, codes: []int{http.StatusOK},
	}
	b.add(path, lists)
	b.add(path, operation{
		method: http.MethodDelete, action: "deletecollection", id: b.operationID("delete Collection", ""),
		description: "delete collection of " + kind,
		parameters:  byName(deleteParameters...),
		body:        b.deleteOptions(), answer: b.status(), codes: []int{http.StatusOK},
	})
	if b.info.Namespaced {
		all := b.acrossNamespaces()
		lists.id = all.operationID("list", "") + "ForAllNamespaces"
		all.add(all.path(), lists)
	}
}

func (b *builder) addCreate(path string) {
	b.add(path, operation{
		method: http.MethodPost, action: "post", id: b.operationID("create", ""),
		description: "create " + article(b.info.Kind) + b.info.Kind,
		parameters:  writeParameters, body: b.object, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
	})
}

func (b *builder) list() string {
	if b.listed != "" {
		return b.listed
	}
	kind := b.info.GVK()
	kind.Kind += "List"
	list, err := scheme.Scheme.New(kind)
	if err != nil { // every kind that is served has a list
		panic("openapi: " + err.Error())
	}
	name := b.definitions.define(reflect.TypeOf(list).Elem())
	b.definitions.addKind(name, kind)
	return name
}

func (b *builder) deleteOptions() *schema {
	name := b.definitions.define(reflect.TypeFor[metav1.DeleteOptions]())
	b.definitions.addKind(name, b.group.version.WithKind("DeleteOptions"))
	return &schema{ref: name}
}

func (b *builder) status() *schema {
	name := b.definitions.define(reflect.TypeFor[metav1.Status]())
	b.definitions.addKind(name, runtimeschema.GroupVersionKind{Version: "v1", Kind: "Status"})
	return &schema{ref: name}
}

// addObject adds the path of one object.
func (b *builder) addObject() {
	b.addPart("")
	answer := b.status()
	if b.info.ReturnDeletedObject {
		answer = b.object
	}
	b.add(b.path("{name}"), operation{
		method: http.MethodDelete, action: "delete", id: b.operationID("delete", ""),
		description: "delete " + article(b.info.Kind) + b.info.Kind,
		parameters:  deleteParameters, body: b.deleteOptions(), answer: answer,
		codes: []int{http.StatusOK, http.StatusAccepted},
	})
}

// addPart adds the path of a part of an object that is read and written like the object; "" for
// the object itself.
func (b *builder) addPart(subresource string) {
	parts := []string{"{name}"}
	if subresource != "" {
		parts = append(parts, subresource)
	}
	path, of := b.path(parts...), "the specified "+b.info.Kind
	if subresource != "" {
		of = subresource + " of " + of
	}
	if verbs := registry.SubresourceVerbs(subresource); len(verbs) == 1 {
		part := *b
		part.info.Verbs = verbs
		b = &part
	}
	b.add(path, operation{
		method: http.MethodGet, action: "get", id: b.operationID("read", subresource), description: "read " + of,
		answer: b.object, codes: []int{http.StatusOK},
	})
	b.add(path, operation{
		method: http.MethodPut, action: "put", id: b.operationID("replace", subresource), description: "replace " + of,
		parameters: writeParameters, body: b.object, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
	patch := &schema{ref: b.definitions.define(reflect.TypeFor[metav1.Patch]())}
	b.add(path, operation{
		method: http.MethodPatch, action: "patch", id: b.operationID("patch", subresource), description: "partially update " + of,
		parameters: patchParameters, consumes: patchTypes, body: patch, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
}

// addSubresource adds the path of one that has a handler of its own.
func (b *builder) addSubresource(sub registry.Subresource) {
	path := b.path("{name}", sub.Name)
	if sub.Create != nil && sub.New != nil {
		object := &schema{ref: b.definitions.define(reflect.TypeOf(sub.New()).Elem())}
		b.definitions.addKind(object.ref, sub.Kind)
		b.add(path, operation{
			method: http.MethodPost, action: "post", id: b.operationID("create", sub.Name), kind: sub.Kind,
			description: "create " + sub.Name + " of a " + b.info.Kind,
			parameters:  writeParameters, body: object, answer: object,
			codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
		})
	}
	if sub.Object != nil {
		part := *b
		part.object = &schema{ref: b.definitions.define(reflect.TypeOf(sub.Object.New()).Elem())}
		b.definitions.addKind(part.object.ref, sub.Kind)
		part.kind = sub.Kind
		part.addPart(sub.Name)
	}
	switch {
	case sub.Name == "log":
		b.addLog(path, sub.Name)
	case len(sub.Connect) > 0:
		b.addConnects(path, sub)
	}
}
