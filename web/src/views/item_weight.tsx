// How much an item weighs, where weights differ.

import type { ItemFigure } from "../contract";
import { share } from "../format";

export const ItemWeight = ({ figure }: { figure: ItemFigure | undefined }) =>
  figure?.learned ? <small>weighs {share(figure.weight)}</small> : null;
