package handlers

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// FuzzPatch: any patch is refused, or its result is valid JSON and not much
// larger than the input.
func FuzzPatch(f *testing.F) {
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"},"finalizers":["x/y","z/z"]},` +
		`"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"1"}]}],"tolerations":[{"key":"k"}]}}`
	medias := seedPatches(f)
	f.Fuzz(func(t *testing.T, media uint8, body []byte) {
		patch, err := readPatch(medias[int(media)%len(medias)], body, newPod)
		if err != nil {
			return
		}
		after, err := patch.apply([]byte(before))
		if err != nil {
			return
		}
		if !json.Valid(after) {
			t.Errorf("%q makes %q", body, after)
		}
		if most := 6*(len(before)+len(body)) + 3<<20; len(after) > most { // escaping, and what copies may add
			t.Errorf("%d bytes make %d", len(body), len(after))
		}
	})
}

// seedPatches adds seeds in each patch format.
func seedPatches(f *testing.F) (medias []types.PatchType) {
	medias = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType}
	for _, seed := range []string{
		`[{"op":"add","path":"/metadata/labels/x","value":"y"}]`,
		`[{"op":"test","path":"/spec/containers/0/name","value":"c"},{"op":"remove","path":"/spec/tolerations/0"}]`,
		`[{"op":"copy","from":"/spec","path":"/metadata/labels/spec"},{"op":"copy","from":"/metadata","path":"/spec/metadata"}]`,
		`[{"op":"move","from":"/spec/containers/0","path":"/spec/containers/-"},{"op":"replace","path":"","value":{}}]`,
		`[{"op":"add","path":"/spec/containers/99999999999","value":null}]`, `[{"op":"replace","path":""}]`, `[{"op":"test","path":""}]`,
		`{"metadata":{"labels":{"a":null,"c":"d"}}}`,
		`{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"j"}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"d"}]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/y"]},"spec":{"$retainKeys":["containers"]}}`,
		`{"$patch":"replace"}`, `{"spec":null}`, `null`, `[]`, `""`, "spec:\n  containers: [{name: c}]", `{"spec":{"containers":{"name":"c"}}}`,
	} {
		for media := range medias {
			f.Add(uint8(media), []byte(seed))
		}
	}
	return medias
}
