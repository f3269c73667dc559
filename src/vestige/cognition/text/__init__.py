"""Text analysis: terms, stems, pieces, forms."""
