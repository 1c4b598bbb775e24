package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	plainType      = "application/json"
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// document is an encoded answer.
type document struct {
	body        []byte
	etag        string
	contentType string
}

func encode(v any, contentType string) (*document, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode discovery document: %w", err)
	}
	sum := sha256.Sum256(body)
	return &document{body: append(body, '\n'), etag: `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`, contentType: contentType}, nil
}

// Install serves the discovery documents of resources. serverAddress is what
// clients are told to reach this server by.
func Install(router gin.IRoutes, resources []Resource, serverAddress string) error {
	all := byGroupVersion(resources)
	groups := groupList(all)
	roots := []struct {
		path  string
		plain any
		core  bool
	}{
		{"/api", &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: coreVersions(all),
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: serverAddress}},
		}, true},
		{"/apis", groups, false},
	}
	for _, root := range roots {
		plain, err := encode(root.plain, plainType)
		if err != nil {
			return err
		}
		together, err := encode(aggregated(all, root.core), aggregatedType)
		if err != nil {
			return err
		}
		serve(router, root.path, func(r *http.Request) *document {
			if wantsAggregated(r.Header.Values("Accept")) {
				return together
			}
			return plain
		})
	}
	for i := range groups.Groups {
		group := groups.Groups[i]
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		if err := serveOne(router, "/apis/"+group.Name, &group); err != nil {
			return err
		}
	}
	for _, gv := range all {
		path := "/apis/" + gv.String()
		if gv.Group == "" {
			path = "/api/" + gv.Version
		}
		if err := serveOne(router, path, resourceList(gv)); err != nil {
			return err
		}
	}
	return nil
}

func coreVersions(all []groupVersion) []string {
	var versions []string
	for _, gv := range all {
		if gv.Group == "" {
			versions = append(versions, gv.Version)
		}
	}
	return versions
}

func serveOne(router gin.IRoutes, path string, v any) error {
	d, err := encode(v, plainType)
	if err != nil {
		return err
	}
	serve(router, path, func(*http.Request) *document { return d })
	return nil
}

func serve(router gin.IRoutes, path string, choose func(r *http.Request) *document) {
	answer := func(c *gin.Context) {
		d := choose(c.Request)
		header := c.Writer.Header()
		header.Set("Vary", "Accept")
		header.Set("ETag", d.etag)
		header.Set("Cache-Control", "public")
		if slices.Contains(c.Request.Header.Values("If-None-Match"), d.etag) {
			c.Status(http.StatusNotModified)
			return
		}
		header.Set("Content-Type", d.contentType)
		_, _ = c.Writer.Write(d.body) // a client that is gone needs no answer
	}
	router.GET(path, answer)
	router.GET(path+"/", answer)
}

// wantsAggregated: the first media type that we can answer with decides.
func wantsAggregated(accept []string) bool {
	for _, header := range accept {
		for part := range strings.SplitSeq(header, ",") {
			mediaType, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil || mediaType != "application/json" && mediaType != "*/*" && mediaType != "application/*" {
				continue
			}
			if parameters["as"] == "" {
				return false
			}
			if parameters["g"] == "apidiscovery.k8s.io" && parameters["v"] == "v2" && parameters["as"] == "APIGroupDiscoveryList" {
				return true
			}
		}
	}
	return false
}
