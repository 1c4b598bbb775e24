package condition

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// The names of types, which users see in compiler messages.
const (
	requestType   = "kubernetes.AdmissionRequest"
	namespaceType = "kubernetes.Namespace"
	variablesType = "kubernetes.variables"
)

func declareObject(name string, fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	declared := make(map[string]*apiservercel.DeclField, len(fields))
	for field, t := range fields {
		declared[field] = apiservercel.NewDeclField(field, t, false, nil, nil)
	}
	return apiservercel.NewObjectType(name, declared)
}

func stringFields(names ...string) map[string]*apiservercel.DeclType {
	fields := make(map[string]*apiservercel.DeclType, len(names))
	for _, name := range names {
		fields[name] = apiservercel.StringType
	}
	return fields
}

var (
	stringList = apiservercel.NewListType(apiservercel.StringType, -1)
	stringMap  = apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
)

// declareRequest is the admission request without its objects.
func declareRequest() *apiservercel.DeclType {
	kind := declareObject("kubernetes.GroupVersionKind", stringFields("group", "version", "kind"))
	resource := declareObject("kubernetes.GroupVersionResource", stringFields("group", "version", "resource"))
	user := stringFields("username", "uid")
	user["groups"] = stringList
	user["extra"] = apiservercel.NewMapType(apiservercel.StringType, stringList, -1)
	fields := stringFields("subResource", "requestSubResource", "name", "namespace", "operation")
	fields["kind"], fields["requestKind"] = kind, kind
	fields["resource"], fields["requestResource"] = resource, resource
	fields["userInfo"] = declareObject("kubernetes.UserInfo", user)
	fields["dryRun"] = apiservercel.BoolType
	fields["options"] = apiservercel.DynType
	return declareObject(requestType, fields)
}

// declareNamespace is the part of a namespace that expressions may see. "UID"
// is spelt as in upstream, where it finds nothing either.
func declareNamespace() *apiservercel.DeclType {
	metadata := stringFields("name", "generateName", "namespace", "UID", "resourceVersion")
	metadata["labels"], metadata["annotations"] = stringMap, stringMap
	metadata["finalizers"] = stringList
	metadata["creationTimestamp"], metadata["deletionTimestamp"] = apiservercel.TimestampType, apiservercel.TimestampType
	metadata["generation"], metadata["deletionGracePeriodSeconds"] = apiservercel.IntType, apiservercel.IntType
	condition := stringFields("type", "status", "reason", "message")
	condition["lastTransitionTime"] = apiservercel.TimestampType
	status := stringFields("phase")
	status["conditions"] = apiservercel.NewListType(declareObject("kubernetes.NamespaceCondition", condition), -1)
	return declareObject(namespaceType, map[string]*apiservercel.DeclType{
		"metadata": declareObject("kubernetes.NamespaceMetadata", metadata),
		"spec":     declareObject("kubernetes.NamespaceSpec", map[string]*apiservercel.DeclType{"finalizers": stringList}),
		"status":   declareObject("kubernetes.NamespaceStatus", status),
	})
}

// declareVariable adds the type of a compiled variable to the declared ones.
func declareVariable(t *cel.Type) *apiservercel.DeclType {
	t = loosened(t)
	return apiservercel.NewSimpleTypeWithMinSize(t.String(), t, nil, 0)
}

// loosened is a type of scalars, and of lists and maps of them; anything else in it may be anything.
func loosened(t *cel.Type) *cel.Type {
	switch t.Kind() {
	case cel.BoolKind, cel.BytesKind, cel.DoubleKind, cel.DurationKind, cel.IntKind, cel.NullTypeKind, cel.StringKind, cel.TimestampKind,
		cel.UintKind:
		return t
	case cel.ListKind:
		return cel.ListType(loosened(t.Parameters()[0]))
	case cel.MapKind:
		return cel.MapType(loosened(t.Parameters()[0]), loosened(t.Parameters()[1]))
	}
	return cel.DynType
}
