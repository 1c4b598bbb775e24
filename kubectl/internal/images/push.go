package images

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// push puts an image into the registry's repository at address, under the tag
// "latest": its blobs first, then the manifest that names them (OCI Distribution
// Specification, "Push"). The registry is our own and on loopback; pushing to
// others would need logins and retries, and a library for these.
func push(ctx context.Context, address string, image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		err = upload(ctx, address, digest, content)
		_ = content.Close()
		if err != nil {
			return err
		}
	}
	digest, err := image.ConfigName()
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	if err := upload(ctx, address, digest, bytes.NewReader(config)); err != nil {
		return err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	kind, err := image.MediaType()
	if err != nil {
		return err
	}
	return send(ctx, http.MethodPut, address+"/manifests/latest", string(kind), bytes.NewReader(manifest))
}

func upload(ctx context.Context, address string, digest v1.Hash, content io.Reader) error {
	where := address + "/blobs/uploads/?digest=" + url.QueryEscape(digest.String())
	return send(ctx, http.MethodPost, where, "application/octet-stream", content)
}

func send(ctx context.Context, method, address, contentType string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, address, response.Status, answer)
	}
	return nil
}
