"""The OpenAPI document, and the page to try it."""
